#!/usr/bin/env bash
# The measurements print what they promise; how fast this machine is, is not tested.
. "$(dirname "$0")/common.bash"
make_models

"$SHOAL" bench train --net images.net --batch 64 --threads 2 --seconds 0.2 --per-layer > out 2> err
same $? 0 "bench train --per-layer"
same "$(cat err)" "" "it says nothing on standard error"
check "a table follows the figures" grep -Eq "^step +pass +ms/round +time +GFLOP/s +peak$" out
for row in "conv1 +forward" "conv1 relu +forward" "dense1 flatten +backward" "pool1 +backward" "dense2 +backward" \
  "loss" "fetching samples" "clearing gradients" "summing gradients" "updating weights" "waiting"; do
  check "a row of the table: $row" grep -Eq "^$row +[0-9.]+ +[0-9.]+%" out
done
check "products have their speed" grep -Eq "^conv1 +forward +[0-9.]+ +[0-9.]+% +[0-9.]+ +[0-9]+%$" out
check "an activation has none" grep -Eq "^conv1 relu +forward +[0-9.]+ +[0-9.]+%$" out
same "$("$SHOAL" bench train --net images.net --seconds 0.1 | grep -c forward)" 0 "no table without being asked"

"$SHOAL" bench train --net chars.net --threads 2 --seconds 0.2 --per-layer --json > steps.json
check "bench train --per-layer --json" python3 - <<'PYTHON'
import json
lines = open("steps.json").read().splitlines()
assert len(lines) == 1
r = json.loads(lines[0])
steps = r["steps"]
for s in steps:
    assert list(s) == ["step", "pass", "ms", "time_share", "gflops", "peak_share"], s
    assert s["ms"] >= 0
names = [(s["step"], s["pass"]) for s in steps]
assert ("lstm1", "forward") in names and ("lstm1", "backward") in names and ("embed1", "backward") in names, names
assert len(set(names)) == len(names), names
assert [s["gflops"] is not None for s in steps if s["step"] == "dense1"] == [True, True]
assert all(s["gflops"] is None for s in steps if s["step"] in ("loss", "embed1", "waiting"))
assert abs(sum(s["time_share"] for s in steps) - 1) < 0.05, sum(s["time_share"] for s in steps)
PYTHON
"$SHOAL" bench train --net mlp --seconds 0.1 --json > plain.json
check "no steps without being asked" python3 -c 'import json; assert "steps" not in json.load(open("plain.json"))'

"$SHOAL" bench train --net mlp --threads 1 --seconds 3600 --json > stopped.json 2> err &
pid=$!
computes() { [ "$(cut -d' ' -f14 /proc/$pid/stat)" -gt 100 ]; } # for a second, of which the warm-up takes little
until_true "a measurement begins" computes
kill -INT $pid
wait $pid
same $? 130 "a measurement that is stopped"
same "$(cat err)" "shoal bench train: stopped by SIGINT" "it says so"
check "what was measured until then is there" python3 - <<'PYTHON'
import json
stopped, plain = (json.load(open(name)) for name in ("stopped.json", "plain.json"))
assert stopped["windows"] == 1 and stopped["batches_per_s"] > 0, stopped
assert plain["windows"] == 5, plain
assert plain["warning"] is None or "measure again" in plain["warning"], plain
PYTHON

"$SHOAL" bench train --net images.net --batch 20 --losses start --json > losses.json
same $? 0 "bench train --losses --json"
same "$("$SHOAL" bench train --net images.net --batch 20 --losses again --threads 3 | cut -c1-29 | tail -1)" \
  "$(python3 -c 'import json; print("round 10      loss %.7f" % json.load(open("losses.json"))["losses"][9])')" \
  "the same losses as text, with other threads"
check "and the same file" cmp start again
check "the weights and the batch are in it, and the losses become less" python3 - <<'PYTHON'
import json
losses = json.load(open("losses.json"))["losses"]
assert len(losses) == 10 and losses[9] < losses[0], losses
data = open("start", "rb").read()
header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
shapes = {name: tensor["shape"] for name, tensor in header.items() if name != "__metadata__"}
assert list(shapes)[0] == "conv1.weight" and list(shapes)[-2:] == ["batch.x", "batch.labels"], shapes
assert shapes["batch.x"] == [20, 1, 8, 8] and shapes["batch.labels"] == [20], shapes
PYTHON
"$SHOAL" bench train --net chars.net --losses /dev/null/x > out 2> err
same $? 1 "a file that cannot be written"

"$SHOAL" bench gemm --seconds 0.05 > out 2> err
same $? 0 "bench gemm"
same "$(cat err)" "" "bench gemm says nothing on standard error"
check "products of a layer" grep -Eq "^dense 200x10000 +weight gradient +200 +10000 +150 +a +[0-9.]+ +[0-9]+%$" out
"$SHOAL" bench gemm --seconds 0.05 --threads 2 --json > gemm.json
same $? 0 "bench gemm --json"
same "$(wc -l < gemm.json)" "$(grep -c '%$' out)" "as many lines as the table has rows"
check "bench gemm --json" python3 - <<'PYTHON'
import json
rows = [json.loads(line) for line in open("gemm.json")]
for r in rows:
    assert list(r) == ["m", "n", "k", "ta", "tb", "gflops", "peak_share", "warning"], r
    assert r["gflops"] > 0 and r["peak_share"] > 0, r
shapes = [(r["m"], r["n"], r["k"], r["ta"], r["tb"]) for r in rows]
assert len(set(shapes)) == len(shapes)
for shape in ((512, 500, 800, 0, 0), (20, 200, 800, 0, 1), (200, 10000, 600, 1, 0), (33, 33, 33, 0, 0)):
    assert shape in shapes, shape
PYTHON

"$SHOAL" bench envs --seconds 0.05 > out 2> err
same $? 0 "bench envs"
same "$(cat err)" "" "bench envs says nothing on standard error"
for env in CartPole-v1 Acrobot-v1 MountainCarContinuous-v0 Snake-v0 Maze-v0; do
  check "a row of the table: $env" grep -Eq "^$env +[0-9,]+$" out
done
"$SHOAL" bench envs --env Pendulum-v1 --count 3 --seconds 0.05 --json > envs.json
check "bench envs --json" python3 - <<'PYTHON'
import json
rows = [json.loads(line) for line in open("envs.json")]
assert len(rows) == 1 and list(rows[0]) == ["env", "count", "steps_per_s"], rows
assert rows[0]["env"] == "Pendulum-v1" and rows[0]["count"] == 3 and rows[0]["steps_per_s"] > 0, rows
PYTHON
finish
