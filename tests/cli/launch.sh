#!/usr/bin/env bash
# shoal launch starts the processes of a training on other machines, starts again who dies, and
# leaves nothing behind, whatever ends it. The machines are addresses of loopback, each with a
# folder; a script stands in for ssh.
. "$(dirname "$0")/common.bash"
make_images "my 'images'" 1024 128
make_models
mkdir 127.0.0.{1,2,3}
for machine in 127.0.0.{1,2,3}; do ln -s "../my 'images'" "$machine/my 'images'"; done
cp images.net 127.0.0.1

# Like ssh: the command runs in a session of its own, hears of this process's end by its standard
# input alone, and dies of no signal that was meant for ssh. 127.0.0.9 cannot be reached, and 127.0.0.8 has
# no Shoal.
cat > ssh.py <<'PYTHON'
import os, subprocess, sys, threading
host, command = sys.argv[-2:]
if host == "127.0.0.9":
    print("ssh: no route to host", file=sys.stderr)
    sys.exit(255)
if host == "127.0.0.8":
    print("sh: shoal: not found", file=sys.stderr)
    sys.exit(127)
remote = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, start_new_session=True,
                          cwd=os.path.join(os.path.dirname(os.path.abspath(__file__)), host))
def relay():
    while data := os.read(0, 4096):
        remote.stdin.write(data)
        remote.stdin.flush()
    remote.stdin.close()
threading.Thread(target=relay, daemon=True).start()
status = remote.wait()
os._exit(status if status >= 0 else 255)
PYTHON

hash_of() { "$SHOAL" inspect "$1" --json > inspect.json && field weights_sha256 inspect.json; }

# hosts LINE...: writes hosts.txt; P1, P2, ... in the lines become ports that are free.
hosts() {
  local list text
  mapfile -t list < <(ports 6)
  text=$(printf '%s\n' "$@")
  for i in 1 2 3 4 5 6; do text=${text//:P$i/:${list[i - 1]}}; done
  echo "$text" > hosts.txt
}

ssh="python3 $folder/ssh.py"
launch=("$SHOAL" launch --hosts hosts.txt --ssh "$ssh" --program "$SHOAL")
data=(--data "my 'images'" --threads 1 --state-dir "$folder/state")
"$SHOAL" train images.net --data "my 'images'" --out one.safetensors --quiet
one=$(hash_of one.safetensors)

# ---- a whole training ----
hosts "# a small cluster" "chief 127.0.0.1:P1" "" "ps 127.0.0.2:P2  # two servers" "ps 127.0.0.3:P3" \
  "worker 127.0.0.2:P4 --threads 2" "	worker 127.0.0.3:P5 --data $folder/127.0.0.2/images"
ln -s "my 'images'" images && ln -s "../images" 127.0.0.2/images
patiently "${launch[@]}" images.net "${data[@]}" --json > events.json 2> err
same $? 0 "the exit status"
same "$(hash_of 127.0.0.1/images.safetensors)" "$one" "the weights of one machine"
same "$(field weights_sha256 events.json)" "$one" "the chief's output is passed through"
check "and nothing else" python3 -c 'import json; [json.loads(line) for line in open("events.json")]'
check "what others say begins with their name: $(cat err)" test -z "$(grep -Ev '^(ps|worker) [01]: [^:]' err)"
all_gone "after the end"

# ---- without a chief, worker 0 is the chief; another folder ----
hosts "ps 127.0.0.2:P1" "worker 127.0.0.1:P2" "worker 127.0.0.3:P3"
mkdir 127.0.0.{1,2,3}/sub
patiently "${launch[@]}" --dir sub ../images.net --data "../my 'images'" --threads 1 \
  --state-dir "$folder/state" > out 2> err
same $? 0 "the exit status when worker 0 is the chief"
same "$(hash_of 127.0.0.1/sub/images.safetensors)" "$one" "the weights when worker 0 is the chief"
check "text for people" grep -q "^epoch 3/3" out
all_gone "after the end"

# ---- one of them has faulty memory ----
hosts "chief 127.0.0.1:P1" "ps 127.0.0.2:P2" "worker 127.0.0.2:P3" "worker 127.0.0.3:P4"
"$SHOAL" train images.net --data "my 'images'" --epochs 100 --out hundred.safetensors --quiet
SHOAL_FAULTY=1:1 patiently "${launch[@]}" images.net "${data[@]}" --epochs 100 --recheck 1 --out faulty.safetensors --json > events.json 2> err
same $? 0 "the exit status with a faulty worker"
same "$(field weights_sha256 events.json)" "$(hash_of hundred.safetensors)" "the weights of one machine with a faulty worker"
check "it is named" grep -q '"text":"worker 1 is dismissed: its result is not what the unit gives' events.json
all_gone "after the end"

# ---- stopped ----
hosts "chief 127.0.0.1:P1" "ps 127.0.0.2:P2" "worker 127.0.0.2:P3" "worker 127.0.0.3:P4"
long=(images.net "${data[@]}" --epochs 100)
"$SHOAL" train images.net --data "my 'images'" --epochs 100 --out long.safetensors --quiet
long_hash=$(hash_of long.safetensors)

# begin OPTION...: starts in the background, $process, and holds the training in the middle.
begin() { held events.json "${launch[@]}" "$@" --json 2> err; }

for signal in INT TERM; do
  begin "${long[@]}" --out $signal.safetensors
  kill -$signal $process
  let_go
  wait $process
  same $? $((128 + $(kill -l $signal))) "the exit status after SIG$signal"
  check "it says what it waits for" grep -q "^shoal launch: the chief saves the model" err
  all_gone "after SIG$signal"
  "$SHOAL" train --resume 127.0.0.1/$signal.safetensors --data "my 'images'" --quiet
  same "$(hash_of 127.0.0.1/$signal.safetensors)" "$long_hash" "stopped by SIG$signal and resumed alone"
done

# ---- killed ----
begin "${long[@]}" --out killed.safetensors
kill -9 $process
let_go
wait $process 2> /dev/null
all_gone "after SIGKILL of shoal launch"
"$SHOAL" train --resume 127.0.0.1/killed.safetensors --data "my 'images'" --quiet
same "$(hash_of 127.0.0.1/killed.safetensors)" "$long_hash" "the chief has saved when its ssh was cut"

begin "${long[@]}" --out again.safetensors
kill -9 "$(pgrep -P $process -f 'job-name worker --task-index 1 ')"
kill -9 "$(pgrep -P $process -f 'job-name ps --task-index 0 ')"
let_go
wait $process
same $? 0 "the exit status when connections are lost"
same "$(field weights_sha256 events.json)" "$long_hash" "connections of a worker and a parameter server are lost"
check "of the worker it was told" grep -q "^shoal launch: the connection to worker 1 died of signal 9; starting it again" err
check "of the server it was told" grep -q "^shoal launch: the connection to ps 0 died of signal 9; starting it again" err
all_gone "after the end"

begin "${long[@]}" --out again.safetensors
kill -9 "$(named "^$SHOAL train .*job-name worker --task-index 0")"
let_go
wait $process
same $? 0 "the exit status when a worker dies"
same "$(field weights_sha256 events.json)" "$long_hash" "a worker dies on its machine"
check "it was told" grep -q "^shoal launch: worker 0 died of signal 9 on its machine; starting it again$" err
check "its machine was not lost: $(cat err)" test "$(grep -c "was lost" err)" = 0
all_gone "after the end"

begin "${long[@]}" --out again.safetensors
kill -9 "$(named "^$SHOAL train .*job-name chief")"
let_go
wait $process
same $? 137 "the exit status when the chief is killed"
check "it is said who killed it" grep -q "^shoal launch: the chief was ended by signal 9 on its machine, 127.0.0.1:" err
all_gone "after that"

# ---- what cannot work ----
hosts "chief 127.0.0.9:P1" "ps 127.0.0.2:P2" "worker 127.0.0.3:P4"
patiently "${launch[@]}" "${long[@]}" > out 2> err
same $? 255 "the exit status when the chief cannot be reached"
check "it is said: $(cat err)" grep -q "^shoal launch: the chief's machine, .*, could not be reached" err
all_gone "after that"
hosts "chief 127.0.0.1:P1" "ps 127.0.0.8:P2" "worker 127.0.0.3:P4"
patiently "${launch[@]}" "${long[@]}" > out 2> err
same $? 1 "the exit status when a parameter server cannot run"
check "it is said: $(cat err)" grep -q "^shoal launch: ps 0 cannot run (status 127); giving up" err
all_gone "after that"
hosts "chief 127.0.0.1:P1" "ps 127.0.0.2:P2" "worker 127.0.0.8:P3" "worker 127.0.0.3:P4"
patiently "${launch[@]}" "${long[@]}" --out one_worker.safetensors > out 2> err # long enough for it to fail first
same $? 0 "the exit status when one of two workers cannot run"
check "it is said: $(cat err)" grep -q "^shoal launch: worker 0 cannot run (status 127); giving up" err
hosts "chief 127.0.0.1:P1" "ps 127.0.0.2:P2" "worker 127.0.0.9:P4"
rm -f out err
"${launch[@]}" "${long[@]}" > out 2> err &
process=$!
until_true "it is tried again and again" bash -c '[ "$(grep -c "trying again" err)" -ge 3 ]'
check "a worker that cannot be reached is waited for" kill -INT $process
wait $process
check "it is not given up: $(tail -1 err)" test "$(grep -c "giving up" err)" = 0
all_gone "after that"
patiently "${launch[@]}" --tries 3 "${long[@]}" > out 2> err
same $? 1 "the exit status when no worker can be reached"
check "it says how often it will be tried: $(cat err)" grep -q "trying again in 1s, try 2 of 3" err
check "and that it was in vain" \
  grep -q "^shoal launch: worker 0 could not be reached in 3 tries in a row (status 255); giving up" err
all_gone "after that"
patiently "$SHOAL" launch --hosts hosts.txt --ssh ./no-such-program "${long[@]}" > out 2> err
same $? 127 "the exit status without ssh"
check "it is said: $(cat err)" grep -q "^cannot run ./no-such-program" err

# wrong STATUS TEXT LINE...: such a file gives this complaint.
wrong() {
  local status=$1 text=$2
  shift 2
  hosts "$@"
  patiently "${launch[@]}" "${long[@]}" > out 2> err
  same $? "$status" "the exit status of: $*"
  check "'$(cat err)' tells '$text'" grep -Fq -- "$text" err
}
good=("chief 127.0.0.1:P1" "ps 127.0.0.2:P2" "worker 127.0.0.3:P3")
wrong 1 "hosts.txt:1: unknown role 'node1'; a line is ROLE HOST:PORT" "node1 slots=2"
wrong 1 "hosts.txt:2: unknown role 'wroker'; did you mean 'worker'?" "${good[0]}" "wroker 127.0.0.1:P4"
wrong 1 "hosts.txt:1: ps: HOST:PORT is missing" "ps  # where?"
wrong 1 "hosts.txt:4: '127.0.0.3' is not HOST:PORT" "${good[@]}" "worker 127.0.0.3"
wrong 1 "hosts.txt:4: '127.0.0.3:0' is not HOST:PORT" "${good[@]}" "worker 127.0.0.3:0"
wrong 1 "hosts.txt:4: '-oProxyCommand=x:1' is not HOST:PORT" "${good[@]}" "worker -oProxyCommand=x:1"
wrong 1 "is taken by line 3" "${good[@]}" "ps 127.0.0.3:P3"
wrong 1 "hosts.txt:4: a second chief" "${good[@]}" "chief 127.0.0.3:P5"
wrong 1 "hosts.txt:4: unknown option '--thread'; did you mean '--threads'?" "${good[@]}" "worker 127.0.0.3:P5 --thread 4"
wrong 1 "there is no line 'ps HOST:PORT'" "${good[0]}" "${good[2]}"
wrong 1 "there is no line 'worker HOST:PORT'" "${good[0]}" "${good[1]}"

# misused TEXT OPTION...: such a command line is wrong.
misused() {
  local text=$1
  shift
  patiently "${launch[@]}" "$@" > out 2> err
  same $? 2 "the exit status of: $*"
  check "'$(cat err)' tells '$text'" grep -Fq -- "$text" err
}
hosts "${good[@]}"
misused "unknown option '--epoch'; did you mean '--epochs'?" images.net "${data[@]}" --epoch 3
misused "--workers: the file of --hosts says who does what" images.net "${data[@]}" --workers 3
misused "--ps-hosts: the file of --hosts says who does what" images.net "${data[@]}" --ps-hosts=a:1
misused "--data is missing" images.net
misused "MODEL.net is missing" "${data[@]}"
misused "'fast' is no mode" images.net "${data[@]}" --mode fast
misused "--ssh: a command" --ssh " " images.net "${data[@]}"
"$SHOAL" launch images.net --data x > out 2> err
same $? 2 "the exit status without --hosts"
check "'$(cat err)'" grep -q "^shoal launch: --hosts is missing" err
"$SHOAL" launch images.net --data x --hosts nowhere.txt > out 2> err
same $? 1 "the exit status without the file"
check "'$(cat err)'" grep -q "^shoal launch: nowhere.txt" err
finish
