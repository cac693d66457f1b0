#!/usr/bin/env bash
# An agent at play: lines where nobody watches, pictures in a terminal, files to keep.
. "$(dirname "$0")/common.bash"
unset COLORTERM COLORFGBG SHOAL_PYTHON

# fails STATUS TEXT WORD...: the command ends with that status and says that on standard error.
fails() {
  local status=$1 text=$2
  shift 2
  "$SHOAL" agent play "$@" > out 2> err
  same $? "$status" "agent play $*"
  check "it says '$text': $(cat err)" grep -qF -- "$text" err
  same "$(cat out)" "" "nothing on standard output"
}

"$SHOAL" agent train --env CartPole-v1 --steps 60000 --seed 1 --threads 1 --out pole.safetensors > train.out 2>&1
same $? 0 "an agent is trained: $(cat train.out)"

# ---- lines
"$SHOAL" agent play pole.safetensors --episodes 3 > lines
same $? 0 "play"
same "$(grep -Ec '^episode [1-3]  return [0-9]+  [0-9]+ steps, then (ended|cut off)$' lines)" 3 "a line an episode"
check "the mean at the end" grep -Eq '^CartPole-v1  mean return [0-9.]+ of 3 episodes \(' <(tail -1 lines)
check "no escapes in a file" test -z "$(grep $'[\r\e]' lines)"
"$SHOAL" agent play pole.safetensors --episodes 3 > again
check "the same seed, the same episodes" cmp lines again

"$SHOAL" agent play pole.safetensors --episodes 4 --seed 7 --json > play.json
same "$(wc -l < play.json)" 5 "a line of JSON an episode, and one at the end"
check "the mean is that of the episodes, and far above chance" python3 -c 'import json
lines = [json.loads(line) for line in open("play.json")]
returns = [line["return"] for line in lines[:-1]]
assert [line["event"] for line in lines] == 4 * ["episode"] + ["end"]
assert lines[-1]["return_mean"] == sum(returns) / 4 and lines[-1]["episodes"] == 4, lines[-1]
assert lines[-1]["steps"] == sum(line["steps"] for line in lines[:-1])
assert lines[-1]["return_mean"] > 100, lines[-1]'

for env in CartPole-v1 CartPole-NoVelocity Acrobot-v1 MountainCar-v0 MountainCarContinuous-v0 Pendulum-v1 Snake-v0 Maze-v0; do
  "$SHOAL" agent play --random --env $env --episodes 2 --json > random.json
  same "$? $(field env random.json) $(field episodes random.json)" "0 $env 2" "random in $env"
done
"$SHOAL" agent play --random --env CartPole-v1 --json --seed 1 > one
"$SHOAL" agent play --random --env CartPole-v1 --json --seed 2 > two
check "another seed, other episodes" test "$(cat one)" != "$(cat two)"
same "$("$SHOAL" agent play pole.safetensors --env CartPole-v0 --episodes 1 --json | tail -1 | grep -o '"env":"[^"]*"')" \
  '"env":"CartPole-v0"' "in another environment of its kind"

# ---- files
"$SHOAL" agent play pole.safetensors --gif pole.gif --size 120x60 > film
same $? 0 "--gif"
check "what was written" grep -Eq '^pole.gif  [0-9]+ pictures, ' film
same "$(head -c 6 pole.gif)" GIF89a "a GIF"
same "$(od -An -tu2 -j6 -N4 pole.gif | tr -s ' ')" " 120 60" "of that size"
"$SHOAL" agent play --random --env Pendulum-v1 --apng swing.png --theme dark --json > film
same "$? $(field out film) $(field pictures film)" "0 swing.png 201" "--apng: a picture before every step, and the end"
same "$(field bytes film)" "$(stat -c %s swing.png)" "its bytes"
same "$(ls | grep -c tmp)" 0 "no temporary files"
"$SHOAL" agent play --random --env CartPole-v1 --gif /dev/fd/3 3>&1 > out | cat > piped.gif
same "$(head -c 6 piped.gif)$(tail -c 1 piped.gif)" "GIF89a;" "a GIF may go to a pipe"

# ---- a terminal
if command -v script > /dev/null; then
  # on_terminal COLUMNS ROWS COMMAND: its output on such a terminal, in the file `seen`.
  on_terminal() {
    script -qec "stty cols $1 rows $2; $3" /dev/null > seen < /dev/null
  }
  play="TERM=xterm LC_ALL=C.UTF-8 '$SHOAL' agent play --random --env CartPole-v1 --episodes 2 --speed 20"
  for size in "40 12" "80 24" "200 50"; do
    on_terminal $size "$play"
    check "it fits in $size" python3 - $size <<'PYTHON'
import re, sys
columns, rows = int(sys.argv[1]), int(sys.argv[2])
seen = open("seen", encoding="utf-8", newline="").read()
assert seen.count("\x1b[?25l") == 1 and seen.count("\x1b[?25h") == 1, "the cursor"
assert seen.index("\x1b[?25l") < seen.index("\x1b[?25h")
before, drawn = seen.split("\x1b[?25l")[1].split("\x1b[?25h")
frames = re.split(r"\r\x1b\[(\d+)A", before.replace("\r\n", "\n"))
pictures, ups = frames[0::2], [int(n) for n in frames[1::2]]
assert len(pictures) > 10, len(pictures)
for picture in pictures:
    lines = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", picture).split("\n")
    assert len(lines) < rows and max(map(len, lines)) < columns, (len(lines), max(map(len, lines)))
    assert all(n == len(lines) - 1 for n in ups)
    assert re.match(r"episode [12]/2  step \d+  reward [01]" + "  return \\d+$" * (columns > 40), lines[-1]), lines[-1]
    assert "\u2580" in picture
PYTHON
    check "256 colours" grep -q $'\e\[38;5;' seen
  done
  check "a summary below" grep -q "CartPole-v1  mean return" <(tail -1 seen)
  on_terminal 80 24 "COLORTERM=truecolor $play"
  check "all colours where the terminal has them" grep -q $'\e\[38;2;' seen
  on_terminal 80 24 "$(sed 's/C.UTF-8/C/' <<< "$play")"
  check "nothing but ASCII in the C locale" test -z "$(tr -d '\000-\177' < seen)"
  check "and no colours there" test -z "$(grep $'\e\[[34]8' seen)"
  check "but a picture" grep -q '##.*' seen
  on_terminal 80 24 "$play --json"
  check "only JSON with --json" test -z "$(grep -v '^{' seen)"
  on_terminal 80 24 "TERM=dumb '$SHOAL' agent play --random --env CartPole-v1"
  check "lines on a dumb terminal" test -z "$(grep $'\e' seen)"

  # Ctrl-C: the cursor is back, and the status is a shell's.
  : > seen
  on_terminal 80 24 "TERM=xterm '$SHOAL' agent play pole.safetensors --speed 0.02 & echo \$! > pid; wait \$!; echo status \$?" &
  until_true "the cursor is hidden" grep -q $'\e\[?25l' seen
  kill -INT "$(cat pid)"
  wait $!
  check "stopped by Ctrl-C: $(tail -2 seen)" grep -q "stopped by SIGINT" seen
  check "the cursor is shown again" grep -q $'\e\[?25h' seen
  check "the status" grep -q "status 130" seen
fi

# What was filmed until then is kept.
rm -f err
"$SHOAL" agent play --random --env Acrobot-v1 --episodes 1000000 --size 1000x1000 --gif cut.gif > cut.log 2> err &
until_true "an episode is filmed" test -s cut.log
kill -INT $!
wait $!
check "stopped: $(cat err)" grep -q "stopped by SIGINT" err
same "$(head -c 6 cut.gif 2> /dev/null)$(tail -c 1 cut.gif 2> /dev/null)" "GIF89a;" "the file is whole"

# ---- mistakes
fails 2 "say which agent plays"
fails 2 "--random needs --env" --random
fails 2 "--random plays without an agent" pole.safetensors --random --env CartPole-v1
fails 2 "give one of --gif and --apng" pole.safetensors --gif a --apng b
fails 2 "--size is for --gif and --apng" pole.safetensors --size 100x100
fails 2 "--size 10: must be WIDTHxHEIGHT" pole.safetensors --size 10 --gif a.gif
fails 2 "--size 8x100: must be" pole.safetensors --size 8x100 --gif a.gif
fails 1 "nowhere.safetensors" nowhere.safetensors
fails 1 "did you mean 'CartPole-v1'?" --random --env CartPoel-v1
fails 1 "cannot play MountainCar-v0" pole.safetensors --env MountainCar-v0
fails 1 "no/a.gif: its folder does not exist" pole.safetensors --gif no/a.gif
fails 1 "/dev/stdout: must be a file" pole.safetensors --apng /dev/stdout
head -c 1000 pole.safetensors > half.safetensors
fails 1 "half.safetensors" half.safetensors
SHOAL_PYTHON=/nowhere/python fails 1 "cannot run '/nowhere/python'" --random --env gym:CartPole-v1
finish
