#!/usr/bin/env bash
# Data between volunteers: peers give each other what the server need not send, whoever wants no peers gets it from the
# server, and all train the same model. How much the server sends depends on when each of them connects, which is up to the
# machine; tests/sim/test_swarm.c holds it to 1.1 copies in simulated time.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/server.bash"
python3 - <<'PYTHON'
import os, struct
os.mkdir("images")
for name, count in (("train", 24000), ("t10k", 100)):
    with open(f"images/{name}-images-idx3-ubyte", "wb") as file:
        file.write(struct.pack(">4i", 2051, count, 28, 28) + os.urandom(count * 784))
    with open(f"images/{name}-labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">2i", 2049, count) + bytes(i % 3 for i in range(count)))
PYTHON
cat > images.net <<'NET'
input 1x28x28
dense 8 tanh
dense 3
loss cross-entropy
optimizer adam rate 0.001
batch 2048
epochs 30
NET

# work NAME WORD...: a volunteer with a cache of its own that leaves after one job; what it says in NAME.log.
work() {
  local name=$1
  shift
  volunteer "$name.log" "$link" --name "$name" --cores 1 --cache "cache-$name" --json "$@"
  worker=$started
}
# moved FIELD NAME: bytes that a volunteer tells of at its end.
moved() { field "$1" "$2.log"; }
# job DATA FILE WORKERS: hosts a training that begins when so many are there.
job() { patiently "$SHOAL" host images.net --data "$1" --server "$link" --out "$2" --workers "$3" > host.log 2>&1; }
sha() { "$SHOAL" inspect "$1" --json | grep -o '"sha256":"[^"]*"'; }

mapfile -t port < <(ports 1)
"$SHOAL" serve --listen "127.0.0.1:${port[0]}" --data-dir server --tls --open nobody > serve.log 2>&1 &
pids+=("$!")
until_true "the server is there" says "admin.link" serve.log
link=$(cat server/admin.link)

# ---- one alone gets all from the server ----
work one --all-data
first=$worker
until_true "it waits" says '"state":"idle"' one.log
job ./images first.safetensors 1-9
same $? 0 "a job: $(tail -2 host.log)"
until_true "all of the data is there" bash -c '[ "$(du -sb cache-one/sets | cut -f1)" -ge 18816000 ]'

# ---- a second one, and one that wants no peers ----
work two --once --all-data
work three --once --no-peers --all-data
until_true "both are idle" bash -c 'grep -q "\"idle\"" two.log && grep -q "\"idle\"" three.log'
job images second.safetensors 3-9
same $? 0 "a second job: $(tail -2 host.log)"
check "the same model" test "$(sha first.safetensors)" = "$(sha second.safetensors)"
until_true "the second has left" says '"event":"end"' two.log
until_true "the third has left" says '"event":"end"' three.log
kill -INT "$first"
wait "$first"
same $? 0 "Ctrl-C of the first: $(tail -2 one.log)"
echo "from the server and from others: one $(moved from_server one) $(moved from_peers one)," \
  "two $(moved from_server two) $(moved from_peers two), three $(moved from_server three) $(moved from_peers three)"
check "the first got it from the server" test "$(moved from_server one)" -ge 18816000
# On one machine the server may be through before the first has said what it has.
check "the second got all, from either" test $(($(moved from_peers two) + $(moved from_server two))) -ge 18816000
check "the first gave what it got from peers" test "$(moved to_peers one)" -ge "$(moved from_peers two)"
same "$(moved from_peers three)" 0 "who wants no peers gets nothing from them"
check "but all from the server" test "$(moved from_server three)" -ge 18816000
check "the data is what it was" cmp -s images/train-images-idx3-ubyte "$(find cache-two -name 'train-images*' | head -1)"

# ---- five at once ----
for name in a b c d e; do work $name --once; done
for name in a b c d e; do until_true "$name is idle" says '"state":"idle"' $name.log; done
job images third.safetensors 5-9
same $? 0 "a job of five: $(tail -2 host.log)"
sum=0 peers=0
for name in a b c d e; do
  until_true "$name has left" says '"event":"end"' $name.log
  sum=$((sum + $(moved from_server $name)))
  peers=$((peers + $(moved from_peers $name)))
done
echo "the server sent $sum bytes to five who came at once, and they sent each other $peers"
check "they give each other what the server does not send" test "$peers" -gt 0

# ---- what is said about it ----
volunteer four.log "$link" --name four --cache cache-four
until_true "others are spoken of" says "who may connect to a port of this machine" four.log
volunteer five.log "$link" --name five --cache cache-five --no-peers
until_true "or that there are none" says "nobody connects to this machine" five.log
finish
