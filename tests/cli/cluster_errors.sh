#!/usr/bin/env bash
# What is wrong with a cluster is said, by whom it concerns: wrong usage (status 2) before anything
# is started, failures (status 1) where waiting will not mend them, and who waits says for what.
. "$(dirname "$0")/common.bash"
make_images images 256 32
make_models

# refused STATUS TEXT OPTION...: shoal train with these options ends with the status and the complaint.
refused() {
  local status=$1 text=$2
  shift 2
  patiently "$SHOAL" train "$@" > out 2> err
  same $? "$status" "the exit status of: $*"
  check "$*: '$(cat err)' tells '$text'" grep -Fq -- "$text" err
}

train=(images.net --data images --out out.safetensors)
hand=(--ps-hosts 127.0.0.1:7001,127.0.0.1:7002 --worker-hosts 127.0.0.1:7003,127.0.0.1:7004)

# ---- usage ----
refused 2 "add --workers N" "${train[@]}" --ps 2
refused 2 "add --workers N" "${train[@]}" --mode sync
refused 2 "add --workers N" "${train[@]}" --wire bf16
refused 2 "add --workers N" "${train[@]}" --transport websocket
refused 2 "add --workers N" "${train[@]}" --recheck 0.1
refused 2 "--recheck compares results" "${train[@]}" --workers 1 --recheck 0.1 --mode async
refused 2 "--recheck compares results" "${train[@]}" --workers 1 --recheck 0.1 --wire topk
refused 2 "'fast' is no mode" "${train[@]}" --workers 1 --mode fast
refused 2 "'stale:65' is no mode" "${train[@]}" --workers 1 --mode stale:65
refused 2 "'local:0' is no mode" "${train[@]}" --workers 1 --mode local:0
refused 2 "--wire: 'f16' is not one of" "${train[@]}" --workers 1 --wire f16
refused 2 "--transport: 'udp' is not one of" "${train[@]}" --workers 1 --transport udp
refused 2 "workers need a parameter server" "${train[@]}" --workers 2 --ps 0
refused 2 "--workers: 2000 is out of range" "${train[@]}" --workers 2000
refused 2 "--transport tls is for roles by hand" "${train[@]}" --workers 2 --transport tls
refused 2 "mpirun starts the processes" "${train[@]}" --workers 2 --transport mpi
refused 2 "mpirun starts the processes" "${train[@]}" --ps 1 --transport mpi
refused 2 "--transport threads is for --workers" "${train[@]}" --job-name worker "${hand[@]}" --transport threads
refused 2 "give one of them" "${train[@]}" --workers 2 --job-name worker "${hand[@]}"
refused 2 "--ps-hosts says who" "${train[@]}" --ps 2 --job-name worker "${hand[@]}"
refused 2 "--job-name: 'boss' is not one of ps, worker or chief" "${train[@]}" --job-name boss "${hand[@]}"
refused 2 "add --job-name" "${train[@]}" "${hand[@]}"
refused 2 "add --job-name" "${train[@]}" --task-index 1
refused 2 "--job-name needs --ps-hosts" "${train[@]}" --job-name worker --worker-hosts 127.0.0.1:7001
refused 2 "--job-name needs --worker-hosts" "${train[@]}" --job-name worker --ps-hosts 127.0.0.1:7001
refused 2 "--job-name chief needs --chief-host" "${train[@]}" --job-name chief "${hand[@]}"
refused 2 "leave out --task-index" "${train[@]}" --job-name chief --task-index 1 "${hand[@]}" --chief-host a:1
refused 2 "--task-index 2: --ps-hosts has 2 addresses" --job-name ps --task-index 2 "${hand[@]}"
refused 2 "--task-index 2: --worker-hosts has 2 addresses" --job-name worker --task-index 2 "${hand[@]}"
for list in a a: :1 a:0 a:65536 a:x a:1,,b:2 a:1, "a b:1"; do
  refused 2 "is not HOST:PORT" --job-name ps --ps-hosts "$list" --chief-host c:1
  refused 2 "is not HOST:PORT" --job-name ps --ps-hosts d:1 --worker-hosts "$list"
done
refused 2 "--chief-host: 'c' is not HOST:PORT" --job-name ps --ps-hosts a:1 --chief-host c
refused 2 "--ps-hosts: a:1 is there twice" --job-name ps --ps-hosts a:1,b:1,a:1 --chief-host c:1
refused 2 "a:1 cannot be the chief's address and" --job-name ps --ps-hosts b:1,a:1 --worker-hosts a:1
refused 2 "need --certificate and --key" --job-name ps "${hand[@]}" --transport tls
refused 2 "need --certificate and --key" "${train[@]}" --job-name worker "${hand[@]}" --transport tls --key k
refused 2 "are for --transport tls" --job-name ps "${hand[@]}" --certificate c --key k
refused 2 "--fingerprint: '12:34' is no SHA-256" --job-name worker --task-index 1 "${hand[@]}" \
  --transport tls --fingerprint 12:34
refused 2 "MODEL.net is missing" --data images --job-name worker --task-index 0 "${hand[@]}"
refused 2 "--data is missing" images.net --job-name worker --task-index 0 "${hand[@]}"

# ---- failures ----
mapfile -t port < <(ports 3)
alone=(--chief-host "127.0.0.1:${port[0]}" --ps-hosts "127.0.0.1:${port[1]}" --state-dir state)
python3 -c "import socket, sys, time
taken = [socket.create_server(('127.0.0.1', int(port))) for port in sys.argv[1:]]
print('ready', flush=True)
time.sleep(600)" "${port[0]}" "${port[1]}" > taken 2>&1 &
taker=$!
until_says ready taken
refused 1 "cannot listen on 127.0.0.1:${port[0]}: Address already in use" "${train[@]}" --job-name chief "${alone[@]}"
refused 1 "ps 0: cannot listen on 127.0.0.1:${port[1]}: Address already in use" --job-name ps "${alone[@]}"
kill $taker
wait $taker 2> /dev/null
: > file
refused 1 "file: is not a folder" "${train[@]}" --workers 1 --state-dir file
refused 1 "file: is not a folder" --job-name ps "${alone[@]}" --state-dir file
refused 1 "nowhere.pem" --job-name ps "${alone[@]}" --transport tls --certificate nowhere.pem --key nowhere.pem
refused 1 "no data set or file is called 'nowhere'" "${train[@]}" --workers 1 --data nowhere
make_table table.csv
refused 1 "the loss is not a number in round" table.net --data table.csv --out inf.safetensors --workers 2 \
  --optimizer "sgd rate 1e9" --epochs 20
check "nothing stays of it" test ! -e inf.safetensors.state

# ---- who has nothing to do ----
patiently "$SHOAL" train "${train[@]}" --workers 2 --shards 1 > out 2>&1
check "one part is one part" grep -q "2 workers, but a round has 1 part: the others only stand by; see --shards" out
sed 's/^dropout.*/batchnorm batch/' images.net > whole.net
patiently "$SHOAL" train whole.net --data images --workers 2 > out 2>&1
check "more parts are not proposed where there can be none" grep -q \
  'a round has 1 part: the others only stand by, as `batchnorm batch` needs it$' out

# ---- who waits says so, and ends in order ----
for role in ps worker; do
  rm -f out err
  "$SHOAL" train --job-name $role "${alone[@]}" > out 2> err &
  process=$!
  until_says "$role 0: waiting for the chief: 127.0.0.1:${port[0]} cannot be reached" err
  kill -TERM $process
  wait $process
  same $? 143 "the exit status of a $role without a chief after SIGTERM"
done
rm -f out err
"$SHOAL" train "${train[@]}" --job-name chief "${alone[@]}" --json > out 2> err &
chief=$!
until_says "waiting for ps 0 at 127.0.0.1:${port[1]}" out
kill -INT $chief
wait $chief
same $? 130 "the exit status of a chief without parameter servers after SIGINT"
check "it says that nothing is lost: $(cat err)" grep -q "stopped before the first round; nothing was trained" err

# ---- who cannot work is given up ----
long=(--data images --epochs 1000000 --out long.safetensors --workers 2 --json)
rm -f out err
"$SHOAL" train images.net "${long[@]}" > out 2> err &
chief=$!
until_says '"event":"epoch"' out
mv images elsewhere
for i in 0 1; do kill -9 "$(pgrep -P $chief -f -- "--job-name worker --task-index $i")"; done
wait $chief
same $? 1 "the exit status when no worker is left"
check "the first is a note" grep -q '"text":"worker [01] ends at once each time (status 1); giving up"' out
check "the last is the error" grep -q "^shoal train: worker [01] ends at once each time (status 1); giving up" err
check "what is kept: $(tail -1 err)" grep -q "^What was kept in long.safetensors.state stays" err
mv elsewhere images
rm -f out err
"$SHOAL" train images.net "${long[@]}" > out 2> err &
chief=$!
until_says "continuing from round" out
kill -INT $chief
wait $chief
same $? 130 "the exit status of the same command, which goes on"

# Whoever opens the pipe reads another table.
mkfifo pipe.csv
python3 - <<'PYTHON' &
import itertools, time
for i in itertools.count():
    try:
        with open("pipe.csv", "w") as pipe:
            pipe.write("".join(f"{row},{i},{row * i}\n" for row in range(100)))
    except BrokenPipeError:
        pass
    time.sleep(0.5)
PYTHON
writer=$!
refused 1 "worker 0: pipe.csv is not the data that the chief trains on" table.net --data pipe.csv \
  --out pipe.safetensors --workers 1 --transport threads
kill $writer 2> /dev/null
wait $writer 2> /dev/null

# ---- those who do not fit together ----
make_images other 257 32
rm -f out err
"$SHOAL" train "${train[@]}" --job-name chief "${alone[@]}" > out 2> err &
chief=$!
"$SHOAL" train --job-name ps "${alone[@]}" 2> ps.err &
ps=$!
until_says "ps 0 is here" out
refused 1 "worker 0: other is not the data that the chief trains on" --job-name worker "${alone[@]}" --data other
refused 1 "worker 1: no data set or file is called 'nowhere'" --job-name worker --task-index 1 "${alone[@]}" --data nowhere
"$SHOAL" train --job-name ps --task-index 1 --chief-host "127.0.0.1:${port[0]}" --state-dir state \
  --ps-hosts "127.0.0.1:${port[1]},127.0.0.1:${port[2]}" 2> ps1.err
same $? 1 "the exit status of a parameter server that is not wanted"
until_says "ps 1: the chief at 127.0.0.1:${port[0]} refuses: the training has no parameter server of this index" ps1.err
until_says "refused ps 1 at 127.0.0.1:" out
until_says "worker 1 left: no data set or file is called 'nowhere'" out
refused 1 "worker 2: the chief at 127.0.0.1:${port[1]} refuses: this is ps 0, not the chief" --job-name worker \
  --task-index 2 --chief-host "127.0.0.1:${port[1]}" --ps-hosts "127.0.0.1:${port[2]}"
until_says "ps 0: refused worker 2 at 127.0.0.1:" ps.err
refused 1 "state is in use by process $chief: another training runs in this folder" "${train[@]}" --job-name chief \
  "${alone[@]}" --chief-host "127.0.0.1:${port[2]}"
"$SHOAL" train "${train[@]}" --job-name worker --worker-hosts "127.0.0.1:${port[2]}" \
  --ps-hosts "127.0.0.1:${port[1]}" --state-dir state2 > other.out 2> other.err &
other=$!
until_says "waiting for ps 0 at 127.0.0.1:${port[1]}: it refuses: this is ps 0 of another training, whose chief is at 127.0.0.1:${port[0]}" other.out
kill -INT $other
wait $other
same $? 130 "the exit status of a chief whose parameter server is another's"
"$SHOAL" train --job-name worker "${alone[@]}" 2> worker.err
same $? 0 "the exit status of a worker that fits"
wait $chief
same $? 0 "the exit status of the chief, which nobody harmed"
wait $ps
same $? 0 "and of the parameter server"
for line in "listening on 127.0.0.1:${port[1]}" "joined the training of the chief" "the training is over"; do
  check "the parameter server tells: $line" grep -q "^ps 0: $line" ps.err
done
for line in "joined the training of the chief" "the training is over"; do
  check "the worker tells: $line" grep -q "^worker 0: $line" worker.err
done

# ---- who comes and goes ----
endless=(images.net --data images --epochs 1000000 --out endless.safetensors)
rm -f out err
"$SHOAL" train "${endless[@]}" --job-name chief "${alone[@]}" --json > out 2> err &
chief=$!
"$SHOAL" train --job-name ps "${alone[@]}" --quiet 2> ps.err &
ps=$!
"$SHOAL" train --job-name worker --task-index 1 "${alone[@]}" --quiet 2> worker.err &
first=$!
until_says '"event":"epoch"' out
"$SHOAL" train --job-name worker --task-index 1 "${alone[@]}" 2> worker2.err &
second=$!
until_says "there are two of the name worker 1 now, the second at 127.0.0.1:" out
kill -INT $first
wait $first
until_says '"text":"worker 1 left"' out
kill -INT $second
wait $second
until_says "worker 1: stopped" worker2.err
"$SHOAL" train --job-name worker --task-index 2 "${alone[@]}" --quiet 2> worker3.err &
third=$!
until_says '"text":"worker 2 is here"' out
epochs=$(grep -c '"event":"epoch"' out)
until_true "another epoch" bash -c "[ \"\$(grep -c '\"event\":\"epoch\"' out)\" -gt $epochs ]"
kill -INT $chief
wait $chief
same $? 130 "the exit status of the chief"
for process in $ps $third; do
  wait $process
  same $? 75 "the exit status of those whose chief was interrupted"
done
check "what a worker has done stays in the table when it has left: $(grep '"event":"worker"' out)" \
  grep -q '"event":"worker","name":"worker 1","parts":[1-9]' out
same "$(grep -c '"event":"worker","name":"worker 1"' out)" 1 "one row a name"
check "--quiet says nothing: $(cat ps.err worker.err)" test ! -s ps.err -a ! -s worker.err

# ---- addresses where nobody is, or somebody else ----
rm -f nobody.err
"$SHOAL" train --job-name worker "${alone[@]}" --chief-host "nobody.invalid:1" 2> nobody.err &
process=$!
until_says "no host of the name 'nobody.invalid' is known here" nobody.err
kill $process
rm -f nobody.err
"$SHOAL" train --job-name worker "${alone[@]}" 2> nobody.err &
process=$!
until_says "cannot be reached: connection refused, nobody listens there; trying for 10 minutes" nobody.err
kill $process
wait $process
python3 -c "import socket, sys, time
taken = socket.create_server(('127.0.0.1', int(sys.argv[1])))
print('ready', flush=True)
time.sleep(600)" "${port[0]}" > retaken 2>&1 &
taker=$!
until_says ready retaken
rm -f nobody.err
"$SHOAL" train --job-name worker "${alone[@]}" 2> nobody.err &
process=$!
until_says "something answers at 127.0.0.1:${port[0]}, but not as Shoal does" nobody.err
check "it was not lost: $(cat nobody.err)" bash -c '! grep -q lost nobody.err'
kill $process $taker
wait $process $taker 2> /dev/null

# What will never do is not waited for, also when the cause was another one at first.
# hopeless TEXT OPTION...: a worker and a parameter server that came first say that nobody is there; once $server runs, they
# end with the text.
hopeless() {
  local text=$1 role pids=()
  shift
  rm -f worker.err ps.err
  for role in worker ps; do
    patiently "$SHOAL" train --job-name $role --chief-host "127.0.0.1:${port[0]}" --state-dir "$folder/hopeless" \
      --ps-hosts "127.0.0.1:${port[2]}" "$@" 2> $role.err &
    pids+=($!)
  done
  for role in worker ps; do until_says "connection refused, nobody listens there; trying for 10 minutes" $role.err; done
  "${server[@]}" > server.out 2>&1 &
  local running=$!
  for role in "${pids[@]}"; do
    wait $role
    same $? 1 "the exit status of those for whom there is no hope: $text"
  done
  for role in worker ps; do
    check "the $role tells '$text': $(cat $role.err)" grep -q "^shoal train: $role 0: .*$text" $role.err
    same "$(grep -c "connection refused" $role.err)" 1 "the first cause is told once"
  done
  kill $running
  wait $running 2> /dev/null
}
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem \
  -days 2 -subj /CN=shoal 2> /dev/null
tls=("${alone[@]}" --transport tls)
sha=$(openssl x509 -in cert.pem -noout -fingerprint -sha256 | sed 's/.*=//')
server=("$SHOAL" train "${train[@]}" --job-name chief "${tls[@]}" --certificate cert.pem --key key.pem)
hopeless "certificate does not have the expected fingerprint" --transport tls --fingerprint "${sha%?}$([ "${sha: -1}" = 0 ] && echo 1 || echo 0)" \
  --certificate cert.pem --key key.pem
hopeless "it speaks TLS; add --transport tls"
hopeless "it speaks TLS; add --transport tls" --transport websocket
server=("$SHOAL" train "${train[@]}" --job-name chief "${alone[@]}")
hopeless "the TLS handshake failed; does that server use TLS" --transport tls --fingerprint "$sha" --certificate cert.pem --key key.pem
cat > speak.py <<'PYTHON'
import socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    peer, _ = listener.accept()
    peer.sendall(bytes.fromhex(sys.argv[2]))
    peer.settimeout(5)
    try:
        while peer.recv(4096): pass
    except OSError: pass
PYTHON
server=(python3 speak.py "${port[0]}" 5353482d322e302d4f70656e5353485f392e320d0a)
hopeless "something answers at 127.0.0.1:${port[0]}, but not as Shoal does\|what came is no Shoal message"
server=(python3 speak.py "${port[0]}" "53484c63$(printf '%0120d' 0)")
hopeless "a message of wire version 99; this program speaks version 1"
rm -f out err
"$SHOAL" train "${train[@]}" --job-name chief "${tls[@]}" --certificate cert.pem --key key.pem > out 2> err &
chief=$!
until_says "waiting for ps 0" out
rm -f nobody.err
"$SHOAL" train --job-name worker "${tls[@]}" 2> nobody.err &
process=$!
wait $process
same $? 1 "the exit status of a worker that does not trust the chief"
until_says "its certificate is signed by nobody known here; if it is the right one, give its SHA-256 with --fingerprint" nobody.err
kill -INT $chief
wait $chief
finish
