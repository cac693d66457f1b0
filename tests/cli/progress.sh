#!/usr/bin/env bash
# On a terminal there is a progress line that fits it; elsewhere there are plain lines.
. "$(dirname "$0")/common.bash"
if ! command -v script > /dev/null; then
  echo "script(1) is not there: skipped"
  exit 0
fi
make_images images 8192 64
make_models

# on_terminal COLUMNS COMMAND: its output on a terminal of that width, in the file `seen`.
on_terminal() {
  script -qec "stty cols $1; $2" /dev/null > seen < /dev/null
}

# longest FILE: the widest that a line gets, with colours and overdrawn parts left out. Prose
# and commands may wrap.
longest() {
  python3 - "$1" <<'PYTHON'
import re, sys
seen = open(sys.argv[1], encoding="utf-8", newline="").read()
seen = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", seen)
prose = re.compile(r"sha256|adam|images|  \S*shoal|stopped|the model that was")
print(max(len(part) for part in re.split(r"[\r\n]", seen) if not prose.match(part)))
PYTHON
}

train="TERM=xterm '$SHOAL' train images.net --data images --threads 1 --epochs 40"
for columns in 50 80 120; do
  on_terminal $columns "$train"
  check "a bar on $columns columns" grep -Eq "epoch [0-9]+/40 \[=*> *\] [0-9]+%" seen
  check "it is drawn over itself" grep -q $'\r.*\r' seen
  check "nothing is wider than $columns columns: $(longest seen)" test "$(longest seen)" -le $columns
  check "a row for the last epoch" grep -Eq "(^|K) +40/40 " seen
done
check "loss, accuracy and time left on 120 columns" \
  grep -Eq "samples/s  loss [0-9.e-]+  accuracy [0-9.]+  eta " seen
check "colours" grep -q $'\e\[36m' seen
check "an ASCII chart in the C locale" grep -q "[*]" seen
check "nothing but ASCII in the C locale" test -z "$(tr -d '\000-\177' < seen)"

on_terminal 80 "LC_ALL=C.UTF-8 $train"
check "a chart of braille dots in a UTF-8 locale" grep -q "⠤⠤⠤" seen
check "nothing is wider than 80 columns in UTF-8: $(longest seen)" test "$(longest seen)" -le 80
on_terminal 80 "NO_COLOR=1 $train"
check "no colours with NO_COLOR" test -z "$(grep $'\e\[3' seen)"
on_terminal 80 "TERM=dumb '$SHOAL' train images.net --data images"
check "no escapes on a dumb terminal" test -z "$(grep $'\e' seen)"
on_terminal 80 "$train --quiet"
same "$(cat seen)" "" "nothing with --quiet"
on_terminal 80 "$train --json 2> /dev/null"
check "only JSON with --json" test -z "$(grep -v '^{' seen)"

# A search of so many trials knows how far it is without a budget of time.
make_table all.csv
on_terminal 80 "TERM=xterm '$SHOAL' search all.csv --target y --trials 60"
check "the share of the trials: $(tr '\r' '\n' < seen | tail -3)" \
  python3 -c "import re; s = [int(p) for p in re.findall(r' (\d+)%', open('seen').read())]; assert s == sorted(s) and max(s) > 50, s"

"$SHOAL" train images.net --data images > plain
check "no escapes in a file" test -z "$(grep $'[\r\e]' plain)"
same "$(grep -c '^epoch [1-3]/3  train loss' plain)" 3 "a line for every epoch in a file"
check "the sum of the weights" grep -Eq "^sha256  [0-9a-f]{64}$" plain
check "what to do next" grep -q "shoal eval images.safetensors --data images" plain
finish
