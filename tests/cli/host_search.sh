#!/usr/bin/env bash
# A search on a server from the command line: submitted with its table, watched, shown, extended, brought back; and what
# does not fit is said before anything is computed.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/server.bash"
python3 - <<'PYTHON'
import random
draw = random.Random(5)
def table(name, rows):
    with open(name, "w") as file:
        file.write("age,city,income,bought\n")
        for i in range(rows):
            age, city, income = draw.uniform(18, 80), draw.choice(["Rome", "Oslo", "Lima"]), draw.gauss(50, 15)
            bought = (age - 40) / 20 + (city == "Rome") + (income - 50) / 30 + draw.gauss(0, 0.4) > 0.5
            file.write(f"{age:.1f},{city},{income:.2f},{'yes' if bought else 'no'}\n")
table("shop.csv", 600)
table("new.csv", 200)
PYTHON
mapfile -t port < <(ports 1)
link="http://127.0.0.1:${port[0]}/#for=tests"
start serve.log serve --listen "127.0.0.1:${port[0]}" --data-dir server
until_says "Serving at" serve.log

# ---- what is wrong ----
refused 2 "--target is missing" host shop.csv --server "$link"
refused 2 "--rate is for a training" host shop.csv --target bought --rate 0.1 --server "$link"
refused 2 "--budget is for a search" host shop.csv --data shop.csv --budget 1m --server "$link"
refused 2 "is no time" host shop.csv --target bought --budget soon --server "$link"
refused 2 "is no kind of column" host shop.csv --target bought --columns age=colour --server "$link"
refused 2 "--metric must be accuracy" host shop.csv --target bought --metric best --server "$link"
refused 1 "neither the server nor this machine has data called 'nothing'" host nothing --target bought --server "$link"
refused 2 "--target: shop.csv: no column is called 'bougt'; did you mean 'bought'" host shop.csv --target bougt --server "$link"
check "no folder of the server is told: $(cat err)" bash -c "! grep -q '$folder' err"
refused 2 "--metric: rmse does not fit" host shop.csv --target bought --metric rmse --server "$link"
check "what was sent for a refused job is taken back" \
  python3 -c 'import json, sys, urllib.request
sys.exit(any(s["name"] == "shop" for s in json.load(urllib.request.urlopen(sys.argv[1]))["datasets"]))' "${link%%#*}api/v1/datasets"
refused 2 "--budget is for 'shoal job resume'" job stop 1 --budget 1m --server "$link"

# ---- from the table to the model ----
volunteer work.log "$link" --name one --cores 1
patiently "$SHOAL" host shop.csv --test new.csv --data-name two --target bought --trials 6 --epochs 3 --folds 1 --seed 3 \
  --columns age=number --server "$link" --out two.safetensors > host.log 2>&1
same $? 0 "a search with test rows of its own: $(cat host.log)"
patiently "$SHOAL" host shop.csv --target bought --trials 10 --epochs 3 --folds 1 --server "$link" --out best.safetensors > host.log 2>&1
same $? 0 "a search: $(cat host.log)"
check "trials are told that are better: $(cat host.log)" grep -Eq "^trial [0-9]+  accuracy 0\.[0-9]+" host.log
check "and the end: $(cat host.log)" grep -Eq "^job 2 is finished, after .*; 10 trials, the best with validation accuracy 0\." host.log
"$SHOAL" eval best.safetensors --data new.csv --json > eval.log
check "its model is good" python3 -c "assert $(field accuracy eval.log) > 0.75"

# ---- shown ----
"$SHOAL" status --server "$link" > status.log
check "status shows trials and score: $(cat status.log)" grep -Eq "  2  shop .*finished .* 100% .*test accuracy 0\.[0-9]+ +10 trials" status.log
"$SHOAL" status --job 2 --server "$link" > status.log
check "what is searched for: $(cat status.log)" grep -q "a search: bought by the other columns of shop" status.log
check "how far it is" grep -q "^10 trials of 10, .* spent" status.log
check "what it found" grep -Eq "^the best is trial [0-9]+: validation accuracy 0\." status.log
check "who did it" grep -Eq "^one +(no|yes) +1[0-9] +[0-9,]{4,} +100%" status.log

# ---- more of it ----
refused 1 "--budget TIME, or --trials N" job resume 2 --server "$link"
"$SHOAL" job resume 2 --trials 14 --server "$link" > resume.log
same "$(cat resume.log)" "job 2 is waiting" "resume"
patiently "$SHOAL" job watch 2 --server "$link" --out more.safetensors --json > watch.log
same $? 0 "watch: $(tail -1 watch.log)"
check "trials are events" grep -q '"event":"trial"' watch.log
check "the model is there" test -s more.safetensors

# ---- stopped, and brought as it is ----
patiently "$SHOAL" host shop --target bought --budget 10m --epochs 3 --name long --detach --server "$link" > host.log
same $? 0 "without waiting: $(cat host.log)"
until_true "it has found something" bash -c "'$SHOAL' status --job 3 --server '$link' | grep -q 'the best is trial'"
check "time is left" grep -Eq " left$" <("$SHOAL" status --job 3 --server "$link")
"$SHOAL" job stop 3 --server "$link" > stop.log
until_true "it stops" bash -c "'$SHOAL' job get 3 --server '$link' > get.log 2>&1"
check "its model is good, too" "$SHOAL" predict long.safetensors --input new.csv --output said.csv
finish
