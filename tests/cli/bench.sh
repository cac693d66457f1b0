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
    assert list(r) == ["m", "n", "k", "ta", "tb", "gflops", "peak_share"], r
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
