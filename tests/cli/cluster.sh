#!/usr/bin/env bash
# Training across processes gives the weights of one machine to the last bit: in the six shapes of
# a cluster by hand, with --workers and --ps, over every transport, stopped and resumed, and with
# processes that are killed. The modes that promise less come to their end with a loss.
. "$(dirname "$0")/common.bash"
make_images images 1024 128
make_text text.txt
make_models

# hash_of FILE: of the weights in a checkpoint.
hash_of() { "$SHOAL" inspect "$1" --json > inspect.json && field weights_sha256 inspect.json; }

# go NAME OPTION...: trains quietly into NAME.safetensors.
go() {
  local name=$1
  shift
  patiently "$SHOAL" train "$@" --out "$name.safetensors" --quiet 2> "$name.err" && return
  fail "train $*"
  cat "$name.err" >&2
  return 1
}

# joined FILE...: waits until all of these workers have found the chief.
joined() {
  local file
  for file in "$@"; do until_says joined "$file"; done
}

# by_hand NAME WORKERS PS OPTION...: one process a role; worker 0 is the chief and trains
# into NAME.safetensors. All must end with status 0. The parameter servers come last: without them nothing
# begins, and a worker that came when all is over would wait ten minutes for another chief.
by_hand() {
  local name=$1 workers=$2 ps=$3 i list=() cluster pids=() chief
  shift 3
  mapfile -t list < <(ports $((workers + ps)) | sed 's/^/127.0.0.1:/')
  cluster=(--worker-hosts "$(IFS=,; echo "${list[*]:0:workers}")"
    --ps-hosts "$(IFS=,; echo "${list[*]:workers}")" --threads 1 "${transport[@]}")
  go "$name" "$@" --job-name worker --task-index 0 "${cluster[@]}" "${served[@]}" --state-dir "$folder/$name.chief" &
  chief=$!
  for ((i = 1; i < workers; i++)); do
    "$SHOAL" train --job-name worker --task-index $i "${cluster[@]}" --state-dir "$folder" \
      2> "$name.worker$i.err" &
    pids+=($!)
  done
  [ "$workers" -eq 1 ] || joined $(seq -f "$name.worker%g.err" $((workers - 1)))
  for ((i = 0; i < ps; i++)); do
    "$SHOAL" train --job-name ps --task-index $i "${cluster[@]}" "${served[@]}" \
      --state-dir "$folder/$name.ps$i" 2> "$name.ps$i.err" &
    pids+=($!)
  done
  if ! wait $chief; then
    fail "$name: the chief"
    kill "${pids[@]}"
  fi
  for i in "${!pids[@]}"; do
    wait "${pids[i]}"
    same $? "$([ "$((i + 1))" = "$dismissed" ]; echo $((! $?)))" "$name: the exit status of parameter server or worker $i"
  done
  check "$name: nothing is kept after the end" test ! -e "$name.chief" -a ! -e "$name.ps0"
}
dismissed=   # the worker that ends with status 1
transport=() # options of every process
served=()    # and of those that listen

# ---- the same bits, whoever computes ----
go one images.net --data images
one=$(hash_of one.safetensors)
for shape in "1 1" "2 1" "3 1" "1 2" "1 3" "2 2"; do
  by_hand "hand${shape/ /x}" $shape images.net --data images
  same "$(hash_of "hand${shape/ /x}.safetensors")" "$one" "${shape/ / workers and } parameter servers by hand"
done
for shape in "1 1" "2 1" "3 2" "4 4"; do
  go local images.net --data images --workers "${shape% *}" --ps "${shape#* }"
  same "$(hash_of local.safetensors)" "$one" "--workers ${shape/ / --ps }"
done
go local images.net --data images --workers 2 --transport websocket
same "$(hash_of local.safetensors)" "$one" "over WebSocket"
check "nothing is kept after the end" test ! -e local.safetensors.state
for shape in "2 1" "3 2"; do
  go local images.net --data images --workers "${shape% *}" --ps "${shape#* }" --transport threads
  same "$(hash_of local.safetensors)" "$one" "${shape/ / workers and } parameter servers as threads"
done
check "nothing is kept after the end of threads" test ! -e local.safetensors.state

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem \
  -days 2 -subj /CN=shoal 2> /dev/null
fingerprint=$(openssl x509 -in cert.pem -noout -fingerprint -sha256 | sed 's/.*=//')
transport=(--transport tls --fingerprint "$fingerprint")
served=(--certificate cert.pem --key key.pem)
export ASAN_OPTIONS=detect_leaks=0 # libwebsockets forgets a TLS context where two loops live in a process
by_hand tls 2 1 images.net --data images
unset ASAN_OPTIONS
same "$(hash_of tls.safetensors)" "$one" "over TLS with the certificate's fingerprint"
transport=()
served=()

# ---- a worker with faulty memory ----
# What worker 1 computes is wrong by one bit. Only with --recheck is that found. The training is long enough for everybody to
# have a part in it, however busy the machine.
four=(images.net --data images --shards 4 --epochs 100)
go shards "${four[@]}"
shards=$(hash_of shards.safetensors)
export SHOAL_FAULTY=1:1
by_hand faulty 3 1 "${four[@]}"
check "the worker says so: $(cat faulty.worker1.err)" \
  grep -q "worker 1: SHOAL_FAULTY is set: results are wrong from unit 1 on" faulty.worker1.err
check "one bit makes another model" test "$(hash_of faulty.safetensors)" != "$shards"
dismissed=1
by_hand faulty 3 2 "${four[@]}" --recheck 1
same "$(hash_of faulty.safetensors)" "$shards" "the bits of one machine with --recheck 1"
check "the worker hears why: $(cat faulty.worker1.err)" \
  grep -q "^shoal train: worker 1: the chief at .* refuses: its result is not what the unit gives" faulty.worker1.err
dismissed=
for transport in tcp threads; do
  patiently "$SHOAL" train "${four[@]}" --workers 3 --recheck 0.5 --transport $transport \
    --out faulty.safetensors --json > events.json 2> err
  same $? 0 "the exit status with --workers 3 --recheck 0.5 over $transport"
  check "the note names the worker" grep -q '"text":"worker 1 is dismissed: its result is not what the unit gives' events.json
  same "$(field weights_sha256 events.json)" "$shards" "the bits of one machine over $transport"
done
unset SHOAL_FAULTY
transport=()
go local images.net --data images --workers 2 --recheck 0.2
same "$(hash_of local.safetensors)" "$one" "--recheck among sound workers"

# ---- other nets ----
go text chars.net --data chars:text.txt
go texts chars.net --data chars:text.txt --workers 3 --ps 2
same "$(hash_of texts.safetensors)" "$(hash_of text.safetensors)" "recurrent state that goes from worker to worker"
go clip images.net --data images --clip 0.05
go clips images.net --data images --clip 0.05 --workers 2 --ps 3
same "$(hash_of clips.safetensors)" "$(hash_of clip.safetensors)" "clipping by a norm that nobody sees whole"
check "it clips" test "$(hash_of clip.safetensors)" != "$one"
go valid images.net --data images --valid 0.2 --early-stop 1 --epochs 9
go valids images.net --data images --valid 0.2 --early-stop 1 --epochs 9 --workers 2
same "$(hash_of valids.safetensors)" "$(hash_of valid.safetensors)" "early stopping"

# ---- lanes ----
# Rows in five blocks, rounds that do not divide the rows, the last of them short.
python3 - > rows.csv <<'PYTHON'
import random
random.seed(5)
print("a,b,y")
for i in range(6150):
    a, b = random.random(), random.random()
    print(f"{a:.4f},{b:.4f},{3 * a - 2 * b:.4f}")
PYTHON
printf 'input 2\ndense 8 tanh\ndense 1\nloss mean-squared\noptimizer sgd rate 0.05\nbatch 70\nepochs 3\nshards 7\n' > rows.net
go lanes rows.net --data rows.csv --shuffle lanes
lanes=$(hash_of lanes.safetensors)
for workers in 1 2 4; do
  go lanes rows.net --data rows.csv --shuffle lanes --workers $workers --ps 2
  same "$(hash_of lanes.safetensors)" "$lanes" "shuffle lanes, $workers workers"
done
go lanes rows.net --data rows.csv --shuffle lanes --threads 1
same "$(hash_of lanes.safetensors)" "$lanes" "shuffle lanes, one thread"
go all rows.net --data rows.csv
check "lanes are another order" test "$(hash_of all.safetensors)" != "$lanes"
go valid images.net --data images --valid 0.2 --shuffle lanes
go valids images.net --data images --valid 0.2 --shuffle lanes --workers 4
same "$(hash_of valids.safetensors)" "$(hash_of valid.safetensors)" "shuffle lanes with validation"
go local images.net --data images --shuffle lanes --mode local:4 --workers 2
go locals images.net --data images --shuffle lanes --mode local:4 --workers 2 --transport threads
same "$(hash_of locals.safetensors)" "$(hash_of local.safetensors)" "shuffle lanes with local steps"
check "another order is told of when a run goes on" \
  sh -c "! '$SHOAL' train --resume valid.safetensors --data images --valid 0.2 --shuffle all --epochs 4 --quiet 2> err"

# ---- modes and wire formats ----
for mode in async stale:2 local:4; do
  for wire in f32 bf16 int8 topk; do
    patiently "$SHOAL" train images.net --data images --workers 2 --ps 2 --mode $mode --wire $wire \
      --out mode.safetensors --json > events.json 2> err
    same $? 0 "the exit status of $mode $wire"
    check "$mode $wire ends with a finite loss: $(tail -1 events.json)" \
      python3 -c 'import json, math, sys
end = json.loads(open("events.json").read().splitlines()[-1])
sys.exit(not (end["event"] == "end" and math.isfinite(end["loss"]) and end["loss"] < 1))'
  done
done
printf 'input 2\ndense 16 relu\nbatchnorm\ndense 1\nloss mean-squared\noptimizer adam\nbatch 64\nepochs 2\n' > norm.net
go norm norm.net --data rows.csv --workers 2 --mode local:1
check "local steps leave running variances above zero" python3 - norm.safetensors <<'PYTHON'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
begin = 8 + struct.unpack("<Q", data[:8])[0]
at = [t["data_offsets"] for name, t in header.items() if name.endswith(".variance")]
sys.exit(not at or any(v <= 0 for a, b in at for v in struct.unpack(f"<{(b - a) // 4}f", data[begin + a:begin + b])))
PYTHON
check "--json tells of workers and parameter servers" \
  test "$(grep -c '"event":"worker"\|"event":"ps"' events.json)" = 4
check "--json tells how long a worker has had its unit" grep -q '"event":"worker".*"held_seconds":' events.json
check "--json tells who came" grep -q '"event":"note","text":"ps 0 is here"' events.json
go local images.net --data images --workers 2 --wire bf16
check "bf16 is not exact" test "$(hash_of local.safetensors)" != "$one"

# ---- stopped and resumed ----
long=(--data images --epochs 100)
go long images.net "${long[@]}"
long_hash=$(hash_of long.safetensors)

# begin NAME OPTION...: starts a training in the background, $process, and holds it in the middle.
begin() {
  local name=$1
  shift
  held events.json "$SHOAL" train "$@" --out "$folder/$name.safetensors" --json 2> err
}

# finished WHAT: it comes to its end with the bits of one machine.
finished() {
  let_go
  wait "$process"
  same $? 0 "$1: the exit status"
  same "$(field weights_sha256 events.json)" "$long_hash" "$1"
}

begin int images.net "${long[@]}" --workers 2 --ps 2
kill -INT $process
let_go
wait $process
same $? 130 "the exit status after SIGINT"
same "$(hash_of int.safetensors)" "$(field weights_sha256 events.json)" "what was saved is what was told"
all_gone "after SIGINT"
cp int.safetensors int2.safetensors
cp int.safetensors int3.safetensors
cp -r int.safetensors.state int3.safetensors.state
"$SHOAL" train --resume int.safetensors --data images --quiet
same "$(hash_of int.safetensors)" "$long_hash" "stopped in a cluster, resumed alone"
go int2 --resume int2.safetensors --data images --workers 3
same "$(hash_of int2.safetensors)" "$long_hash" "stopped in a cluster, resumed in another"
begin int3 --resume int3.safetensors --data images --workers 2 --ps 2
finished "stopped in a cluster, resumed in the same"
check "nothing is kept after the end of what was resumed" test ! -e int3.safetensors.state

begin term images.net "${long[@]}" --workers 2 --ps 2
kill -TERM $process
let_go
wait $process
same $? 143 "the exit status after SIGTERM"
all_gone "after SIGTERM"
stood=$(field step events.json)
begin term images.net "${long[@]}" --workers 2 --ps 2
finished "stopped in a cluster, and the same command given again"
went_on=$(grep -o '"text":"continuing from round [0-9,]*' events.json | tr -dc 0-9)
check "it goes on where it stood, in round $stood, or a little later: ${went_on:-nowhere}" test "${went_on:-0}" -ge "$stood"
check "nothing is kept after the end of what went on" test ! -e term.safetensors.state

begin threads images.net "${long[@]}" --workers 3 --ps 2 --transport threads
kill -INT $process
let_go
wait $process
same $? 130 "the exit status of threads after SIGINT"
same "$(hash_of threads.safetensors)" "$(field weights_sha256 events.json)" "what threads saved is what was told"
cp threads.safetensors threads2.safetensors
go threads2 --resume threads2.safetensors --data images --workers 2 --transport threads
same "$(hash_of threads2.safetensors)" "$long_hash" "stopped as threads, resumed as others"
begin threads images.net "${long[@]}" --workers 3 --ps 2 --transport threads
finished "stopped as threads, and the same command given again"
check "it was told" grep -q '"text":"continuing from round' events.json

# ---- killed ----
begin worker images.net "${long[@]}" --workers 2 --ps 2
kill -9 "$(pgrep -P $process -f -- '--job-name worker --task-index 1')"
finished "a worker is killed"
check "it was told" grep -q '"text":"worker 1 died of signal 9; starting it again"' events.json
begin ps images.net "${long[@]}" --workers 2 --ps 2
kill -9 "$(pgrep -P $process -f -- '--job-name ps --task-index 0')"
finished "a parameter server is killed"
check "it was told" grep -q '"text":"ps 0 died of signal 9; starting it again"' events.json
begin chief images.net "${long[@]}" --workers 2 --ps 2
kill -9 $process
let_go
wait $process 2> /dev/null
all_gone "after SIGKILL of the chief"
begin chief images.net "${long[@]}" --workers 3 --ps 2
finished "the chief is killed, and the same command given again"
check "it was told" grep -q '"text":"continuing from round' events.json
all_gone "after the end"

early=(--data images --valid 0.2 --early-stop 4 --epochs 200)
go early images.net "${early[@]}"
begin early2 images.net "${early[@]}" --workers 2
kill -9 $process
let_go
wait $process 2> /dev/null
all_gone "after SIGKILL of a chief that stops early"
check "the best epoch is kept" test -e early2.best.safetensors
begin early2 images.net "${early[@]}" --workers 2
let_go
wait $process
same $? 0 "early stopping, and the chief is killed: the exit status"
same "$(hash_of early2.safetensors)" "$(hash_of early.safetensors)" "early stopping, and the chief is killed"

mkdir chaos
(cd chaos && patiently "$SOURCE_DIR/tools/chaos" "$SHOAL" ../images.net ../images 6 0.3 --epochs 600 > out 2>&1)
same $? 0 "any of them is killed, six times: $(tail -3 chaos/out 2> /dev/null)"
finish
