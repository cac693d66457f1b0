#!/usr/bin/env bash
# The measurements of clusters print what they promise and leave nothing behind; how fast they are is not tested.
. "$(dirname "$0")/common.bash"
export TMPDIR=$folder

# leftovers: processes of clusters that were started from here.
leftovers() {
  grep -la -- "$folder" /proc/[0-9]*/cmdline 2> /dev/null | while read -r file; do
    tr '\0' ' ' < "$file" | grep -- "--job-name"
  done 2> /dev/null
}

for measurement in train gemm ps scaling; do
  "$SHOAL" bench "$measurement" --help > out 2> err
  same $? 0 "shoal bench $measurement --help"
  check "it shows how it is used" grep -q "^Usage: shoal bench $measurement" out
  check "it has examples" grep -q "^  shoal bench $measurement" out
done

patiently "$SHOAL" bench ps --megabytes 1 --seconds 0.2 --json > ps.json 2> err
same $? 0 "bench ps"
same "$(cat err)" "" "bench ps says nothing on standard error"
check "bench ps --json" python3 - <<'PYTHON'
import json
rows = [json.loads(line) for line in open("ps.json")]
assert [r["model"] for r in rows] == ["lenet5", "large"], rows
for r in rows:
    assert list(r) == ["model", "model_bytes", "contributions_per_s", "bytes_per_s", "gbit_per_s"], r
    # A contribution goes in and the weights come out: no more than one of each.
    a_contribution = r["bytes_per_s"] / r["contributions_per_s"] / r["model_bytes"]
    assert 1 < a_contribution < 2.3, a_contribution
PYTHON

for mode in local:3 fast; do
  "$SHOAL" bench ps --mode $mode > out 2> err
  same $? 2 "the status of bench ps --mode $mode"
  check "it names the option: $(head -1 err)" grep -q "^shoal bench ps: --mode: '$mode' is " err
done

patiently "$SHOAL" bench scaling --net mlp --workers 1,3,1000 --mode local:5 --seconds 0.2 --simulate \
  --csv out.csv --svg out.svg --json > rows.json 2> err
same $? 0 "bench scaling"
same "$(cat err)" "" "bench scaling says nothing on standard error"
check "rows of bench scaling" python3 - <<'PYTHON'
import csv, json, os
import xml.etree.ElementTree as tree
rows = [json.loads(line) for line in open("rows.json")]
assert [(r["mode"], r["workers"]) for r in rows] == [("local:5", w) for w in (1, 3, 1000)]
processors = len(os.sched_getaffinity(0))
for r in rows:
    how = "simulated" if r["workers"] > 50 else "computed" if r["workers"] <= processors else "waited"
    assert r["how"] == how and r["links"] == "not shaped" and r["transport"] == "tcp", r
    assert (r["batches_per_s"] is None) == (how == "simulated"), r
    assert r["simulated_batches_per_s"] > 0 and r["simulated_speedup"] > 0, r
    if r["workers"] == 1:
        assert r["speedup"] == r["efficiency"] == r["simulated_speedup"] == 1, r
table = list(csv.DictReader(open("out.csv")))
assert len(table) == len(rows)
for line, r in zip(table, rows):
    assert list(line) == [k for k in r if k != "batch_seconds"], line
    assert line["mode"] == r["mode"] and int(line["workers"]) == r["workers"]
    assert (line["batches_per_s"] == "") == (r["batches_per_s"] is None)
picture = tree.parse("out.svg").getroot()
assert picture.tag.endswith("svg") and ", tcp, " in picture[0].text
lines = [e for e in picture if e.tag.endswith("polyline")]
assert len(lines) == 2, len(lines)  # run and simulated
PYTHON

patiently "$SHOAL" bench scaling --net mlp --workers 2 --mode async --transport threads --seconds 0.2 > out 2> err
same $? 0 "bench scaling as a table"
check "its head names the transport" grep -q "^mlp, batch [0-9]* a worker, threads, f32, " out
check "a row of the table" grep -Eq "^async +2 +(computed|waited) +[0-9.]+ +- +[0-9.]+ +- +[0-9.]+ [kMG]?B$" out

# What a measurement with links left that was killed is removed by the next one.
if [ "$(id -u)" = 0 ] && command -v tc > out && ip netns add shoal-4999999-0 2> err; then
  patiently "$SHOAL" bench scaling --net mlp --workers 1 --mode sync --rate 1000 --seconds 0.2 > out 2> err
  same "$? $(cat err)" "0 " "bench scaling --rate"
  check "a namespace of nobody is gone" test ! -e /run/netns/shoal-4999999-0
fi

# Ctrl-C in the middle of a long measurement.
rm -f out err
"$SHOAL" bench scaling --net mlp --workers 3 --mode sync --seconds 1000 > out 2> err &
pid=$!
until_true "it has come to its processes, past the calibration" bash -c "[ \$(pgrep -cP $pid) -ge 4 ]"
kill -INT $pid
wait $pid
same $? 130 "the status after Ctrl-C"
same "$(leftovers)" "" "no process is left"
same "$(find . -maxdepth 1 -name 'shoal-bench-*')" "" "no folder is left"
finish
