#!/usr/bin/env bash
# What a person meets who trains with many processes for the first time: models that are kept, signals that
# come in pairs, flags that are missing or of no use, and what is said about all that.
. "$(dirname "$0")/common.bash"
make_images images 600 100
make_models

# refused STATUS TEXT WORD...: shoal train fails so, and says so.
refused() {
  local status=$1 text=$2
  shift 2
  patiently "$SHOAL" train "$@" > out 2> err
  same $? "$status" "the exit status of: $*"
  check "'$(head -2 err)' tells '$text'" grep -Fq -- "$text" err
}

# ---- a crash does not cost the model of before ----
"$SHOAL" train images.net --data images --seed 99 --epochs 1 --out k.safetensors --quiet
cp k.safetensors earlier.safetensors
cluster=(images.net --data images --epochs 1000000 --workers 2 --out k.safetensors)
for transport in tcp threads; do
  cp earlier.safetensors k.safetensors
  rm -rf k.previous.safetensors k.safetensors.state
  rm -f out err
  "$SHOAL" train "${cluster[@]}" --transport $transport > out 2> err &
  chief=$!
  until_true "a record of a later round" grep -q "^epoch *3/" out
  kill -9 $chief
  wait $chief 2> /dev/null
  check "the model of before is moved aside" cmp -s earlier.safetensors k.previous.safetensors
  rm -f out err
  "$SHOAL" train "${cluster[@]}" --transport $transport > out 2> err &
  chief=$!
  until_true "the going on" grep -q "^continuing from round" out
  until_true "a save of the second process" grep -q "^epoch" out
  kill -INT $chief
  wait $chief
  same $? 130 "the exit status when it is stopped"
  check "it is still there after a crash" cmp -s earlier.safetensors k.previous.safetensors
  check "nothing else was moved" test ! -e k.previous-2.safetensors
  check "the command that goes on has the cluster's flags" \
    grep -q "shoal train --resume k.safetensors --data images --workers 2 --transport $transport$" out
done

# ---- signals in pairs ----
rm -f events.json
setsid "$SHOAL" train images.net --data images --epochs 100000 --out pair.safetensors --json > events.json &
process=$!
until_says '"event":"epoch"' events.json
kill -INT "$process"
kill -INT -- "-$process"
wait "$process"
same $? 130 "the exit status when the process and its group are signalled"
same "$(field event events.json)" interrupted "two signals at once are one wish"
check "the model is saved" test -s pair.safetensors
cat > stop.py <<'PYTHON'
import os, pty, signal, subprocess, sys, time
leader, follower = pty.openpty()
with open("stop.log", "w") as log:
    process = subprocess.Popen(sys.argv[1:], stdout=log, stderr=follower)
while process.poll() is None and "epoch" not in open("stop.log").read():
    time.sleep(0.05)
process.send_signal(signal.SIGINT)
process.wait()
print(os.read(leader, 4096).decode(errors="replace"))
PYTHON
python3 stop.py "$SHOAL" train images.net --data images --epochs 100000 --out pair.safetensors > said
check "the first says so on a terminal: $(cat said)" grep -q "Stopping after this round; again ends at once." said

# ---- what is missing ----
hand=(--ps-hosts 127.0.0.1:7001,127.0.0.1:7002 --worker-hosts 127.0.0.1:7003,127.0.0.1:7004)
refused 2 "which of the 2 in --ps-hosts is this process? add --task-index" --job-name ps "${hand[@]}"
refused 2 "which of the 2 in --worker-hosts is this process?" images.net --data images --job-name worker "${hand[@]}"
refused 2 "'a:99999' is not HOST:PORT: a port is from 1 to 65535" --job-name ps --ps-hosts a:99999 --chief-host c:1
refused 2 "' b:1' is not HOST:PORT: there is a blank in it" --job-name ps --ps-hosts "a:1, b:1" --chief-host c:1
touch here.pem
tls=(--transport tls --chief-host 127.0.0.1:7001 --ps-hosts 127.0.0.1:7002)
refused 1 "--certificate: nope.pem: No such file" --job-name ps "${tls[@]}" --certificate nope.pem --key here.pem
refused 1 "--key: nope.pem: No such file" images.net --data images --job-name chief "${tls[@]}" \
  --certificate here.pem --key nope.pem

# ---- a chief that is stopped before anything has happened ----
mapfile -t port < <(ports 2)
alone=(--chief-host "127.0.0.1:${port[0]}" --ps-hosts "127.0.0.1:${port[1]}" --state-dir state)
rm -f out err
"$SHOAL" train images.net --data images --job-name chief "${alone[@]}" > out 2> err &
chief=$!
until_true "the waiting" grep -q "waiting for" out
refused 1 "; is this role running already?" images.net --data images --job-name chief "${alone[@]}" --seed 7
kill -INT $chief
wait $chief
same $? 130 "the exit status of a chief that waited"
check "it says that nothing was trained: $(cat err)" grep -q "stopped before the first round; nothing was trained" err
check "there is no table of work that nobody did" test "$(grep -c parts out)" = 0
check "nothing is kept" test ! -e state

# ---- flags of the chief ----
rm -f err
"$SHOAL" train images.net --job-name worker --task-index 3 "${alone[@]}" --seed 3 --epochs 9 2> err &
worker=$!
until_true "the note" grep -q "worker 3: what the chief was told counts; ignored here: --epochs --seed$" err
kill $worker
wait $worker 2> /dev/null

# ---- what is told ----
"$SHOAL" train images.net --data images --epochs 2 --shards 2 --workers 3 --out few.safetensors --json > events.json
check "more workers than parts are told" grep -q '"text":"3 workers, but a round has 2 parts' events.json
# Who comes late misses two short epochs; somebody has made them.
check "who came is told in fields" \
  grep -q '"event":"note","text":"worker \([0-2]\) is here.*","role":"worker","index":\1' events.json
check "no validation samples, no validation loss" test "$(grep -c valid_loss events.json)" = 0
check "but a test loss" grep -q '"event":"end".*"test_loss"' events.json
rates=$(python3 -c 'import json, math
events = [json.loads(line) for line in open("events.json")]
print(all(0 < e["samples_per_s"] < math.inf for e in events if e["event"] == "epoch"))')
same "$rates" True "the rates of epochs: $(grep '"event":"epoch"' events.json)"
"$SHOAL" train images.net --data images --valid 0.2 --epochs 1 --out few.safetensors --json > events.json
check "a validation loss with validation samples" grep -q '"event":"end".*"valid_loss"' events.json

rm -f out err
"$SHOAL" train images.net --data images --epochs 1000000 --seed 1 --workers 1 --out stale.safetensors > out 2> err &
chief=$!
until_true "a record" grep -q "^epoch *2/" out
kill -9 $chief
wait $chief 2> /dev/null
"$SHOAL" train images.net --data images --epochs 1 --seed 2 --workers 1 --out stale.safetensors > out 2> err
same $? 0 "the exit status beside what another training kept"
check "what lies there is told" grep -q "stale.safetensors.state holds an unfinished training with other settings" out

# ---- waiting is no training ----
rm -f events.json err
"$SHOAL" train images.net --data images --epochs 1000000 --workers 1 --out wait.safetensors --json > events.json 2> err &
chief=$!
until_true "some epochs" grep -q '"event":"epoch","epoch":3' events.json
worker=$(pgrep -P $chief -f -- '--job-name worker')
kill -STOP "$worker"
sleep 4
kill -CONT "$worker"
sleep 1
kill -INT $chief
wait $chief
waited=$(python3 -c 'import json
events = [json.loads(line) for line in open("events.json")]
print(events[-1]["seconds"] - sum(e["seconds"] for e in events if e["event"] == "epoch") > 3)')
same "$waited" True "a worker that stood still for four seconds did not train"

"$SHOAL" sim --seeds 3 > out 2> err
check "a simulation ends with a verdict" grep -q "^All well: no rule was broken in 3 lives.$" out
finish
