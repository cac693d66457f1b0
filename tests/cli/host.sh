#!/usr/bin/env bash
# What a host gets from `shoal host` and `shoal job`: the right data under the right names, files that stay where
# they are, and a plain word where something cannot be.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/server.bash"
make_models
make_table all.csv
make_text novel.txt
mapfile -t port < <(ports 3)
link="http://127.0.0.1:${port[0]}/#for=tests"

# samples NAME: how many samples of a data set of the server train, and how many test.
samples() { ask "datasets/$1" 's["samples"]["train"], s["samples"]["test"]'; }
# ask PATH EXPRESSION: what the server tells, by an expression of Python on `s`.
ask() {
  python3 -c 'import json, sys, urllib.request
s = json.load(urllib.request.urlopen(sys.argv[1]))
print(eval(sys.argv[2]))' "${link%%#*}api/v1/$1" "$2"
}

start serve.log serve --listen "127.0.0.1:${port[0]}" --data-dir server
until_says "Serving at" serve.log
volunteer work.log "$link" --name one --cores 1

# ---- two tables, and names with a # ----
mkdir 'exp#3' other
cp table.net 'exp#3/net#1.net'
head -151 all.csv > train.csv
{ head -1 all.csv; tail -50 all.csv; } > other/train.csv
cp train.csv latest.csv
cp other/train.csv rest.csv
patiently "$SHOAL" host 'exp#3/net#1.net' --data train.csv,other/train.csv --server "$link" \
  --out 'run#2.safetensors' > host.log 2>&1
same $? 0 "two tables of the same name: $(cat host.log)"
check "the model is where it was wanted" test -f 'run#2.safetensors'
same "$(ask jobs/1 's["name"]')" net-1 "a job is called after its model, as names may be"
same "$(samples train)" "(150, 50)" "the first trains, the second tests"
"$SHOAL" host table.net --data latest.csv,rest.csv --server "$link" --detach > host.log 2>&1
same $? 0 "two tables with other names: $(cat host.log)"
same "$(samples latest)" "(150, 50)" "whatever their names are"
"$SHOAL" host table.net --data latest.csv,rest.csv --server "$link" --detach > host.log 2>&1
check "they are not sent again" bash -c '! grep -q sending host.log'

# ---- a job that is refused leaves nothing behind ----
mkdir csv
cp all.csv csv/iris.csv
printf 'input 9\ndense 3\nloss cross-entropy\n' > nine.net
refused 2 "feature columns" host nine.net --data csv/iris.csv --server "$link" --detach
same "$(ask datasets 'any(d["name"] == "iris" for d in s["datasets"])')" False "the set is taken back"
refused 1 "has data called 'fashion_mnist'; did you mean 'fashion-mnist'?" \
  host images.net --data fashion_mnist --server "$link" --detach

# ---- one text, read in two ways ----
"$SHOAL" host chars.net --data chars:novel.txt --server "$link" --detach > host.log 2>&1
same $? 0 "a text: $(cat host.log)"
refused 1 "of the kind chars, and this one is of the kind text" \
  host chars.net --data text:novel.txt --server "$link" --detach

# ---- a folder of image files ----
# weights FILE: the SHA-256 of the weights of a model.
weights() {
  python3 -c 'import json, struct, sys
file = open(sys.argv[1], "rb")
print(json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))["__metadata__"]["shoal.weights_sha256"])' "$1"
}
make_pngs bands 120 0
patiently "$SHOAL" host images.net --data bands --augment "flip crop 1" --server "$link" --out hosted.safetensors \
  > host.log 2>&1
same $? 0 "images: $(cat host.log)"
check "it is said what is done to them" grep -q "images of 8x8 to 20x16 are scaled to 8x8" host.log
same "$(ask datasets/bands 's["kind"], s["shape"], s["classes"]')" \
  "('idx', '1x8x8', ['bottom', 'middle', 'top'])" "they are sent as the model takes them, with the names of classes"
"$SHOAL" train images.net --data bands --augment "flip crop 1" --out local.safetensors --quiet || fail "train on images"
same "$(weights hosted.safetensors)" "$(weights local.safetensors)" "weights from a volunteer, of flipped images"
"$SHOAL" eval hosted.safetensors --data bands --json > hosted.json && "$SHOAL" eval local.safetensors --data bands --json > local.json
same "$(field samples hosted.json)" "$(field samples local.json)" "the model knows which files were held out"
check "and its classes" grep -q "^bands/top/0000.png  top" <("$SHOAL" predict hosted.safetensors --input bands/top/0000.png)
"$SHOAL" host images.net --data bands --server "$link" --detach > host.log 2>&1
check "images are not sent again" bash -c '! grep -q sending host.log'
check "what was packed is gone" bash -c '! ls -d home/.cache/shoal/packed-*'

# ---- numbers are numbers ----
"$SHOAL" host table.net --data train.csv,other/train.csv --server "$link" --epochs 2 --rate .5 \
  --seed 18446744073709551615 --rule median --no-audits --detach --json > out
same $? 0 "a job with numbers: $(cat out)"
numbers=$(ask "jobs/$(field data out | grep -o "'id': [0-9]*" | head -1 | tr -cd 0-9)" \
  '(s["spec"]["epochs"], s["recipe"]["rate"], "seed 18446744073709551615" in s["spec"]["model"], s["spec"]["rule"], s["spec"]["guard"])')
same "$numbers" "(2, 0.5, True, 'median', False)" "they arrive as they were given"

# ---- rules that do nothing ----
patiently "$SHOAL" host table.net --data train.csv,other/train.csv --server "$link" --epochs 1 \
  --rule trimmed:0 --out trimmed.safetensors > host.log 2> err
same $? 0 "a rule that leaves out none is taken: $(cat err)"
check "with a warning" grep -Eq "^shoal host: warning: a round has [0-9]+ contributions?, of which rule trimmed:0 leaves out none" err
check "that the job's log has, too" grep -q "warning: a round has" <(ask "jobs/$(grep -o '^job [0-9]*' host.log | head -1 | tr -cd 0-9)/log" s)
refused 1 "'shards N' in the model's text, or a larger batch" \
  host table.net --data train.csv,other/train.csv --server "$link" --rule krum:200 --detach

# ---- nothing is lost under a name that the server chose ----
echo precious > net-1.safetensors
patiently "$SHOAL" job get 1 --server "$link" > get.log
same "$(cat net-1.previous.safetensors)" precious "what was there is kept"
check "it is told" grep -q "what was in net-1.safetensors is in net-1.previous.safetensors now" get.log
check "the model is there" cmp -s net-1.safetensors 'run#2.safetensors'
check "nothing else is left" test ! -e net-1.safetensors.new

# ---- watching ----
patiently "$SHOAL" job watch 1 --server "$link" --out watched.safetensors --json > watch.log
same "$(grep -c '"event":"epoch"' watch.log)" 3 "epochs that are over are told as JSON, too"
refused 1 "is there a server?" job watch 1 --json --server "127.0.0.1:${port[1]}"
start web.log serve --listen "127.0.0.1:${port[1]}" --data-dir open --tls --open host
until_says "Serving at" web.log
refused 1 "there is no job 99" job watch 99 --server "$link"

# ---- a job that fails ----
refused 2 "--target: train/train.csv: no column is called 'nope'" host table.net --data train --target nope --server "$link"
same "$(grep -c "no column" err)" 1 "why is told once"
check "and not once more at the end: $(cat out)" bash -c '! grep "^job [0-9]* is failed" out | grep -q "no column"'

# ---- an upload that is broken off ----
mkdir long
make_text long/a.txt
head -c 40000000 /dev/zero | tr '\0' 'a' > long/b.txt
mapfile -t slow < <(ports 1)
python3 - "${slow[0]}" "${port[0]}" <<'PYTHON' &
import socket, sys, threading, time
def pass_on(a, b, pause):
    try:
        while data := a.recv(65536):
            b.sendall(data)
            time.sleep(pause)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    near, far = listener.accept()[0], socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    threading.Thread(target=pass_on, args=(near, far, 0.02), daemon=True).start()
    threading.Thread(target=pass_on, args=(far, near, 0), daemon=True).start()
PYTHON
pids+=("$!")
until_true "the slow line is there" bash -c "exec 3<> /dev/tcp/127.0.0.1/${slow[0]}"
start long.log host chars.net --data text:long --server "http://127.0.0.1:${slow[0]}"
uploading=$started
until_true "its first file is there: $(cat long.log)" test -f server/data/drafts/long/a.txt
kill -INT "$uploading"
wait "$uploading"
same $? 130 "the exit status of an upload that is broken off: $(cat long.log)"
check "nothing of it is left" test ! -e server/data/drafts/long

# ---- deleting ----
deleted=$("$SHOAL" job delete 1 --json --server "$link")
same "$deleted" '{"event":"deleted","data":{"id":1}}' "delete tells what it did"

# ---- more than are shown ----
python3 - "${link%%#*}api/v1/jobs" <<'PYTHON'
import json, sys, urllib.request
job = {"model": open("table.net").read(), "data": "train", "workers_min": 9}
for i in range(60):
    body = json.dumps({**job, "name": f"job {i}"}).encode()
    urllib.request.urlopen(urllib.request.Request(sys.argv[1], body))
PYTHON
all=$(ask server 'sum(s["jobs"].values())')
"$SHOAL" status --server "$link" > out
check "what is not shown is counted" grep -qx "and $((all - 50)) more" out

# ---- an open server with TLS, and certificates ----
check "its fingerprint is in the command" \
  grep -Eq "shoal work https://127.0.0.1:${port[1]}/#fp=[0-9a-f]{64}$" web.log
open=$(grep -o 'https://[^ ]*#fp=[0-9a-f]*' web.log)
"$SHOAL" status --server "$open" > /dev/null
same $? 0 "which lets one in"
refused 1 "at most 64 names" \
  serve --listen "127.0.0.1:${port[2]}" --data-dir many --tls --names "$(seq -s, -f 'h%g' 70)"
refused 1 "is neither a host name nor an address" \
  serve --listen "127.0.0.1:${port[2]}" --data-dir many --tls --names "node.example,$(printf '%0300d' 0)"
# One that an earlier version made, to which links have its own fingerprint, stays until it lacks a name of --names.
mkdir early
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout early/key.pem -out early/certificate.pem \
  -days 300 -subj /CN=shoal -addext subjectAltName=DNS:node.example 2> /dev/null
cp early/certificate.pem early.pem
for names in node.example node.example,other.example; do
  start early.log serve --listen "127.0.0.1:${port[2]}" --data-dir early --tls --names "$names"
  until_says "Serving at" early.log
  kill "$started"
  wait "$started"
  cmp -s early.pem early/certificate.pem
  same $? "$([ "$names" = node.example ]; echo $?)" "whether the certificate is another one for --names $names"
done
start quiet.log serve --listen "127.0.0.1:${port[2]}" --data-dir closed --open nobody --quiet
until_says "The link in closed/admin.link makes you its admin." quiet.log
check "the token is not printed" bash -c '! grep -q "#t=" quiet.log'
"$SHOAL" status --server "$(cat closed/admin.link)" > /dev/null
same $? 0 "the link is good"

# ---- Ctrl-C ----
mapfile -t port < <(ports 1)
start bench.log bench platform "127.0.0.1:${port[0]}#t=secret" --volunteers 1
until_true "it has begun" catches "$started"
check "the token is not in the list of processes" bash -c "! grep -q secret /proc/$started/cmdline"
kill -INT "$started"
wait "$started"
same $? 130 "the exit status after Ctrl-C"
check "it is told" grep -q "shoal bench platform: stopped by SIGINT" bench.log
finish
