# Two thousand connections that send garbage, half a message, or nothing, to the chief and the
# parameter servers while a training runs: it ends with the same bits as without them.
source "$SOURCE_DIR/tests/cli/common.bash"

make_images images 2000 100
cat > small.net <<'NET'
input 1x8x8
conv  8 3x3 tanh
dense 30 tanh
dense 3
loss  cross-entropy
optimizer momentum rate 0.05
batch 50
epochs 60
shards 4
NET
"$SHOAL" train small.net --data images --out alone.safetensors --quiet --seed 3

mapfile -t port < <(ports 3)
cluster=(--ps-hosts "127.0.0.1:${port[1]},127.0.0.1:${port[2]}" --chief-host "127.0.0.1:${port[0]}" --data images
  --threads 1 --state-dir state)
"$SHOAL" train small.net --job-name chief "${cluster[@]}" --out together.safetensors --seed 3 > chief.log 2>&1 &
chief=$!
for i in 0 1; do "$SHOAL" train --job-name ps --task-index $i "${cluster[@]}" 2> "ps$i.log" & done

python3 - "${port[@]}" > garbage.log <<'PYTHON' &
import random, resource, socket, struct, sys, time
random.seed(1)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
ports = [int(word) for word in sys.argv[1:]]

def header(kind, length):
    head = b"SHL\x01" + struct.pack("<HHQQQQQIII", kind, 0, length, 1, 1, 1, 1, 0, 0, 1)
    check = 2166136261
    for byte in head:
        check = (check ^ byte) * 16777619 & 0xffffffff
    return head + struct.pack("<I", check)

def what(i):
    return [lambda: random.randbytes(random.randrange(1, 3000)),
            lambda: header(11, 100000)[:random.randrange(1, 64)],             # half a header
            lambda: header(11, 100000) + random.randbytes(5000),              # half a payload
            lambda: b"",                                                      # nothing
            lambda: b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            lambda: header(random.randrange(1, 22), 0) * 20,                  # orders from nobody
            lambda: header(5, 1 << 60)][i % 7]()

since, sockets, sent = time.time(), [], 0
while sent < 2000 and time.time() < since + 300:
    try:
        s = socket.create_connection(("127.0.0.1", ports[sent % 3]), timeout=5)
    except OSError:
        time.sleep(0.05)
        continue
    try:
        s.send(what(sent))
    except OSError:
        pass
    sockets.append(s)
    sent += 1
    since = time.time()
print(sent)
time.sleep(3)
PYTHON
garbage=$!
sleep 0.5
for i in 0 1; do "$SHOAL" train --job-name worker --task-index $i "${cluster[@]}" 2> "worker$i.log" & done
check "the training ends" wait $chief
wait $garbage
same "$(cat garbage.log)" 2000 "connections made"
"$SHOAL" inspect alone.safetensors --json > alone.json
"$SHOAL" inspect together.safetensors --json > together.json
same "$(field weights_sha256 together.json)" "$(field weights_sha256 alone.json)" "the weights"
finish
