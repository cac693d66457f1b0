#!/usr/bin/env bash
# shoal search: repeats exactly, goes on after a kill, keeps to its budget, says what is wrong; eval and predict with
# its model.
. "$(dirname "$0")/common.bash"
python3 - <<'PYTHON'
import random
draw = random.Random(3)
def table(name, rows):
    with open(name, "w") as file:
        file.write("id,age,city,income,bought\n")
        for i in range(rows):
            age, city, income = draw.uniform(18, 80), draw.choice(["Rome", "Oslo", "Lima"]), draw.gauss(50, 15)
            bought = (age - 40) / 20 + (city == "Rome") + (income - 50) / 30 + draw.gauss(0, 0.4) > 0.5
            file.write(f"{i},{age:.1f},{city},{'' if i % 9 == 0 else f'{income:.2f}'},{'yes' if bought else 'no'}\n")
table("shop.csv", 2400)
table("new.csv", 300)
PYTHON
# search OUT WORD...: trials as "NUMBER SCORE EPOCHS" in OUT.txt, in their order.
search() {
  local out=$1
  shift
  "$SHOAL" search shop.csv --json --out "$out.safetensors" "$@" > "$out.log" 2> "$out.err"
  local status=$?
  python3 - "$out" <<'PYTHON'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1] + ".log")]
rows = sorted((r["trial"], r["epochs"], r["score"], json.dumps(r["settings"])) for r in rows if r["event"] == "trial")
open(sys.argv[1] + ".txt", "w").write("".join(f"{r}\n" for r in rows))
PYTHON
  return $status
}
some=(--target bought --trials 14 --epochs 6)

# ---- the same again, with any number of threads ----
search one "${some[@]}" --threads 1
same $? 0 "a search: $(cat one.err)"
check "trials were made" test "$(wc -l < one.txt)" -ge 14
search two "${some[@]}" --threads 2
check "two threads try the same" cmp one.txt two.txt
check "the score is good: $(field test_accuracy one.log)" python3 -c "assert $(field test_accuracy one.log) > 0.8"
search other "${some[@]}" --seed 2
check "another seed tries others" bash -c '! cmp -s one.txt other.txt'
check "an identifier is not learned from" grep -q "'id'" one.err

# ---- killed, and taken up again ----
"$SHOAL" search shop.csv "${some[@]}" --json --out killed.safetensors > killed.log 2>&1 &
pid=$!
until [ "$(grep -c '"event":"trial"' killed.log 2> /dev/null)" -ge 5 ] || ! kill -0 $pid 2> /dev/null; do sleep 0.01; done
kill -9 $pid 2> /dev/null
wait $pid 2> /dev/null
"$SHOAL" search shop.csv --resume --trials 14 --json --out killed.safetensors > killed.log 2> killed.err
same $? 0 "going on after a kill: $(cat killed.err)"
check "the same trials as undisturbed" diff <(cut -d, -f1-7 one.search/trials.csv | cut -d, -f1-6) <(cut -d, -f1-6 killed.search/trials.csv)
check "and the same model's score" test "$(field test_accuracy killed.log)" = "$(field test_accuracy one.log)"

# ---- extended ----
"$SHOAL" search shop.csv --resume --trials 20 --json --out one.safetensors > more.log 2>&1
same $? 0 "more trials: $(tail -1 more.log)"
same "$(field trials more.log)" 20 "there are more"

# ---- the budget, and Ctrl-C ----
start=$SECONDS
"$SHOAL" search shop.csv --target bought --budget 4s --out quick.safetensors > quick.log 2>&1
same $? 0 "a budget of 4 s: $(tail -1 quick.log)"
check "it holds: $((SECONDS - start)) s" test $((SECONDS - start)) -le 7
"$SHOAL" search shop.csv --target bought --budget 10m --out stopped.safetensors > stopped.log 2>&1 &
pid=$!
until grep -q "^trial" stopped.log; do sleep 0.05; done
kill -INT $pid
wait $pid
same $? 130 "Ctrl-C"
check "the best so far is there" test -s stopped.safetensors

# ---- its model ----
"$SHOAL" eval one.safetensors --data new.csv --json > eval.log
same $? 0 "eval"
check "on other rows" python3 -c "assert $(field accuracy eval.log) > 0.8 and $(field samples eval.log) == 300"
cut -d, -f1-4 new.csv > asked.csv
"$SHOAL" predict one.safetensors --input asked.csv --output said.csv
same $? 0 "predict"
same "$(head -1 said.csv)" "bought,p(no),p(yes)" "what is said"
same "$(wc -l < said.csv)" 301 "of every row"
printf 'age,city,income\n50,Atlantis,\n' > odd.csv
check "a category that was never seen, and nothing" "$SHOAL" predict one.safetensors --input odd.csv
"$SHOAL" search shop.csv --target income --problem regression --trials 6 --epochs 4 --json --out number.safetensors > number.log 2>&1
check "numbers, too" python3 -c "assert $(field test_rmse number.log) < 40"

# ---- what is wrong ----
# wrong STATUS WORDS ARGUMENT...
wrong() {
  local status=$1 words=$2
  shift 2
  "$SHOAL" "$@" > wrong.log 2>&1
  same $? "$status" "$*: $(cat wrong.log)"
  check "$*: $(cat wrong.log)" grep -qF -- "$words" wrong.log
}
wrong 2 "--target is missing" search shop.csv
wrong 2 "no time" search shop.csv --target bought --budget soon
wrong 2 "no kind of column" search shop.csv --target bought --columns age=colour
wrong 2 "cannot be changed with --resume" search shop.csv --resume --target age --out one.safetensors
wrong 2 "--seed cannot be changed" search shop.csv --resume --seed 2 --out one.safetensors
wrong 2 "--test-share cannot be changed" search shop.csv --resume --test-share 0.1 --out one.safetensors
wrong 1 "did you mean 'bought'" search shop.csv --target bougt
wrong 1 "does not fit" search shop.csv --target bought --metric rmse
wrong 1 "there is no search to go on with" search shop.csv --resume --out nothing.safetensors
wrong 1 "no such file" search none.csv --target x
wrong 2 "takes raw rows" eval one.safetensors --data new.csv --split test
printf 'a,b\n1,2\n' > thin.csv
wrong 1 "" search thin.csv --target b
finish
