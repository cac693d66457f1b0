# common.bash: what the tests of the commands share. Each runs in an empty folder of its own.
#
# SHOAL is the program (build/shoal), SOURCE_DIR the repository.
set -uo pipefail
: "${SHOAL:?}" "${SOURCE_DIR:?}"
folder=$(mktemp -d)
# Of this shell alone: a copy of it that is ended before it has become another program has the same trap.
trap '[ $BASHPID = $$ ] && rm -rf "$folder"' EXIT
cd "$folder" || exit 1
unset SHOAL_DATA SHOAL_KERNELS COLUMNS NO_COLOR
export HOME=$folder/home XDG_DATA_HOME=$folder/home/data LC_ALL=C
checks=0
failures=0

# fail WORD...: notes a failure and goes on.
fail() {
  failures=$((failures + 1))
  echo "FAILED: $*" >&2
}

# A word that is no command, such as a check that nobody wrote, fails the test. bash calls this in a shell of its own,
# so a file notes it.
command_not_found_handle() {
  echo "$1: no such command" | tee -a "$folder/no_command" >&2
  return 127
}

# finish: the exit status of the test.
finish() {
  [ ! -e "$folder/no_command" ] || fail "$(cat "$folder/no_command")"
  echo "$checks checks, $failures failed"
  [ "$failures" -eq 0 ] && [ "$checks" -gt 0 ]
  exit
}

# check WHAT COMMAND...: the command must succeed.
check() {
  local what=$1
  shift
  checks=$((checks + 1))
  "$@" || fail "$what"
}

# same A B WHAT: two texts must be equal.
same() {
  checks=$((checks + 1))
  [ "$1" = "$2" ] || fail "$3: '$1' is not '$2'"
}

# patiently COMMAND...: what hangs is ended after much longer than anything takes here, on a slow machine that is busy, too.
patience=300
patiently() { timeout -s KILL "$patience" "$@"; }

# until_true WHAT COMMAND...: waits for a command to succeed. Gives up only when no file of the test has changed for very long.
until_true() {
  local what=$1 since=$SECONDS looked=$SECONDS before= now
  shift
  checks=$((checks + 1))
  until "$@" 2> /dev/null; do
    if ((SECONDS - looked >= 5)); then
      looked=$SECONDS
      now=$(ls -lR --full-time "$folder" 2> /dev/null | cksum)
      [ "$now" = "$before" ] || since=$SECONDS
      before=$now
    fi
    ((SECONDS - since < patience)) || { fail "$what"; return 1; }
    sleep 0.05
  done
}
says() { grep -Fqs -- "$1" "$2"; }
# until_says TEXT FILE: waits for a line. What is started in the background empties its file a moment later, so a file of
# that name from before is removed first.
until_says() { until_true "'$1' is not in $2" says "$1" "$2" || cat "$2" >&2; }

# held FILE COMMAND...: a training in the background, $process, that tells of its epochs into FILE: it is in the middle, and
# stays there until it is let go, however slow this test is. It waits for its reader, who has stopped after the first epoch:
# a pipe takes few of the lines that are to come.
held() {
  local file=$1
  shift
  rm -f "$file" held.pipe held.ready held.go
  mkfifo held.pipe
  python3 - "$file" <<'PYTHON' &
import fcntl, os, select, sys, time
pipe = os.open("held.pipe", os.O_RDONLY | os.O_NONBLOCK)
fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
os.set_blocking(pipe, True)
open("held.ready", "w").close()
waiting = select.poll()
waiting.register(pipe, select.POLLIN)
waiting.poll()
with open(sys.argv[1], "wb", buffering=0) as file:
    text = b""
    while part := os.read(pipe, 256):
        file.write(part)
        text += part
        while b'"event":"epoch"' in text[:text.rfind(b"\n") + 1] and not os.path.exists("held.go"):
            time.sleep(0.01)
            if not os.path.exists("held.ready"):
                sys.exit("the test has ended")
PYTHON
  reader=$!
  until_true "a reader" test -e held.ready
  "$@" > held.pipe &
  process=$!
  until says '"event":"epoch"' "$file" || ! kill -0 $reader 2> /dev/null; do sleep 0.01; done
}
let_go() {
  touch held.go
  wait $reader
}

# catches PROCESS: whether it is far enough to have something to say when it is interrupted. Until the program is started, the
# process is a copy of this shell, which catches the signal as well.
catches() {
  ! [ "/proc/$1/exe" -ef "/proc/$$/exe" ] && ((0x$(sed -n 's/^SigCgt:[^0-9a-f]*//p' "/proc/$1/status") & 2))
}

# started_here: processes of this test that still run, one a line.
started_here() { pgrep -f -- "$folder" | grep -vx $$; }
# named PATTERN: those whose command is like that.
named() {
  started_here | while read -r pid; do
    ! tr '\0' ' ' 2> /dev/null < "/proc/$pid/cmdline" | grep -q -- "$1" || echo "$pid"
  done
}
# all_gone WHAT: waits until none is left.
all_gone() {
  until_true "$1: processes are left" none_here && return
  started_here | xargs -r ps -o pid,args -p >&2
  started_here | xargs -r kill -9
}
none_here() { [ -z "$(started_here)" ]; }

# field KEY FILE: the value of a key in the last line of JSON in a file.
field() {
  python3 -c 'import json, sys
print(json.loads(open(sys.argv[2]).read().splitlines()[-1])[sys.argv[1]])' "$1" "$2"
}

# ports N: so many ports of this machine that are free, one a line.
ports() { "$SOURCE_DIR/tools/ports" "$1"; }

# make_images FOLDER TRAIN TEST: IDX files of 8x8 images in 3 classes: a bright band at the
# top, in the middle or at the bottom, in noise.
make_images() {
  mkdir -p "$1"
  python3 - "$@" <<'PYTHON'
import random, struct, sys
folder, counts = sys.argv[1], (("train", int(sys.argv[2])), ("t10k", int(sys.argv[3])))
random.seed(7)
for name, count in counts:
    images, labels = bytearray(), bytearray()
    for i in range(count):
        label = random.randrange(3)
        for y in range(8):
            level = 150 if y // 3 == label else 0
            images += bytes(level + random.randrange(100) for x in range(8))
        labels.append(label)
    with open(f"{folder}/{name}-images-idx3-ubyte", "wb") as file:
        file.write(struct.pack(">4i", 2051, count, 8, 8) + images)
    with open(f"{folder}/{name}-labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">2i", 2049, count) + labels)
PYTHON
}

# make_pngs FOLDER COUNT FIRST: images of a bright band at the top, in the middle or at the bottom, in noise; some
# are grey and of 8x8, some are larger and of colours.
make_pngs() {
  python3 - "$@" <<'PYTHON'
import os, random, struct, sys, zlib
folder, count, first = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
for i in range(first, first + count):
    random.seed(i)
    label = i % 3
    place = f"{folder}/{('top', 'middle', 'bottom')[label]}"
    os.makedirs(place, exist_ok=True)
    w, h, kind, values = (8, 8, 0, 1) if i % 2 else (20, 16, 2, 3)
    rows = b"".join(b"\0" + bytes((150 if y * 8 // h // 3 == label else 0) + random.randrange(100)
                                  for x in range(w * values)) for y in range(h))
    with open(f"{place}/{i:04}.png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, kind, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PYTHON
}

# make_text FILE: a text of some thousand characters with a vocabulary of 10.
make_text() {
  python3 - "$1" <<'PYTHON'
import random, sys
random.seed(7)
words = ["abba", "cede", "bead", "face", "deaf", "egg"]
with open(sys.argv[1], "w") as file:
    for line in range(300):
        file.write(" ".join(random.choice(words) for i in range(5)) + "\n")
PYTHON
}

# make_models: nets that fit them.
make_models() {
  cat > images.net <<'NET'
input 1x8x8
conv 6 3x3 relu
pool max 2x2
dropout 0.2
dense 16 tanh
dense 3
loss cross-entropy
optimizer adam rate 0.01
batch 32
epochs 3
NET
  cat > chars.net <<'NET'
input tokens 12 carry
embed 10 8
lstm 16
dense 10
loss cross-entropy
optimizer adam rate 0.01
clip 1
batch 8
epochs 3
NET
  cat > table.net <<'NET'
input 2
dense 8 tanh
dense 1
loss mean-squared
optimizer adam rate 0.02
batch 16
epochs 3
NET
}

# make_table FILE: y = 3a - 2b.
make_table() {
  python3 - "$1" <<'PYTHON'
import random, sys
random.seed(7)
with open(sys.argv[1], "w") as file:
    file.write("a,b,y\n")
    for i in range(200):
        a, b = random.random(), random.random()
        file.write(f"{a:.4f},{b:.4f},{3 * a - 2 * b:.4f}\n")
PYTHON
}
