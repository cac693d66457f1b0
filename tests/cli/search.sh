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
check "so is what was expected: $(tail -1 one.log)" python3 - <<'PYTHON'
import json
end = json.loads(open("one.log").readlines()[-1])
scores = json.load(open("one.search/insight.json"))["scores"]
assert 0 < end["estimate_error"] < 0.05 and abs(end["estimate"] - end["test_accuracy"]) < 5 * end["estimate_error"], end
assert scores["estimate"] == end["estimate"] and scores["valid"] == end["valid_score"], scores
PYTHON
check "and the same by two threads" test "$(field estimate one.log)" = "$(field estimate two.log)"
head -81 shop.csv > few.csv
"$SHOAL" search few.csv --target bought --trials 3 --epochs 4 --json --out few.safetensors > few.log 2>&1
check "an estimate has its error with few rows, too: $(tail -1 few.log)" \
  python3 -c "assert 0 < $(field estimate_error few.log) < 0.3"
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
check "and the same estimate" test "$(field estimate killed.log)" = "$(field estimate one.log)"
check "and the same model's score" test "$(field test_accuracy killed.log)" = "$(field test_accuracy one.log)"

# ---- extended ----
"$SHOAL" search shop.csv --resume --trials 20 --json --out one.safetensors --log-dir logs > more.log 2>&1
same $? 0 "more trials: $(tail -1 more.log)"
same "$(field trials more.log)" 20 "there are more"
"$SHOAL" search shop.csv --resume --trials 20 --json --out one.safetensors --table /dev/full > table.log 2> table.err
same $? 1 "a table that cannot be written: $(cat table.err)"
check "the end is told all the same: $(tail -1 table.log)" grep -q '"event":"done".*"test_accuracy"' table.log
check "and what is wrong: $(cat table.err)" grep -q "/dev/full" table.err
same "$(grep -al "_hparams_/session_start_info" logs/trial-*/events.out.tfevents.* | wc -l)" 20 \
  "every trial is there for TensorBoard, those of before, too"

# points FOLDER: how many points of curves its trials have.
points() { cat "$1"/trial-*/events.out.tfevents.* | grep -ao "loss/train" | wc -l; }
"$SHOAL" search shop.csv --target bought --trials 4 --epochs 6 --out log.safetensors --log-dir curves > log.log 2>&1
"$SHOAL" search shop.csv --resume --trials 14 --out log.safetensors > log.log 2>&1
for _ in 1 2; do
  "$SHOAL" search shop.csv --resume --trials 14 --out log.safetensors --log-dir curves > log.log 2>&1
  same $? 0 "going on with --log-dir once more: $(tail -1 log.log)"
done
"$SHOAL" search shop.csv --resume --trials 14 --out log.safetensors --log-dir whole > log.log 2>&1
same "$(points curves)" "$(points whole)" "what was trained without --log-dir is written later, and once"

same "$(grep -c '"event":"columns"' one.log)" 1 "the columns are told"
check "each with its kind" python3 - <<'PYTHON'
import json
columns = json.loads(open("one.log").readline())["columns"]
assert [(c["name"], c["kind"], c["use"]) for c in columns] == [
    ("id", "identifier", "none"), ("age", "number", "feature"), ("city", "category", "feature"),
    ("income", "number", "feature"), ("bought", "category", "target")], columns
PYTHON
"$SHOAL" search shop.csv --resume "${some[@]:0:2}" --trials 20 --epochs 6 --seed 1 --scheduler model --out one.safetensors \
  > again.log 2> again.err
same $? 0 "what it began with may be said again: $(cat again.err)"
check "that all trials are done is said: $(cat again.err)" \
  grep -q "there are 20 trials already, and --trials 20 is how many there may be in all" again.err
check "the kinds are shown: $(cat again.err)" grep -Eq "^  city    category    3 values: .*Rome" again.err

# ---- the budget, and Ctrl-C ----
"$SHOAL" search shop.csv --target bought --budget 4s --out quick.safetensors > quick.log 2>&1
same $? 0 "a budget of 4 s, which alone ends it: $(tail -1 quick.log)"
"$SHOAL" search shop.csv --target bought --budget 10m --out stopped.safetensors > stopped.log 2>&1 &
pid=$!
until_true "a trial" grep -q "^trial [0-9]" stopped.log
kill -INT $pid
wait $pid
same $? 130 "Ctrl-C"
check "the best so far is there" test -s stopped.safetensors
check "with what it uses, though time is over: $(cat stopped.search/insight.json)" python3 - <<'PYTHON'
import json
for name in "quick", "stopped":
    insight = json.load(open(f"{name}.search/insight.json"))
    assert [c["column"] for c in insight["columns"]] == ["age", "city", "income"], insight["columns"]
    assert insight["lessons"] or insight["lessons_why"]
PYTHON

# ---- its model ----
"$SHOAL" eval one.safetensors --data new.csv --json > eval.log
same $? 0 "eval"
check "on other rows" python3 -c "assert $(field accuracy eval.log) > 0.8 and $(field samples eval.log) == 300"

# Rows that are not scored, and what could not be read, are said.
(head -41 new.csv | tail -40; echo "900,old,Rome,12,yes"; echo "901,44,Rome,12,"; echo "902,44,Rome,12,perhaps") > odd.csv
"$SHOAL" eval one.safetensors --data odd.csv --json > eval.log 2> eval.err
same $? 0 "eval of odd rows: $(cat eval.err)"
same "$(field samples eval.log) $(field rows eval.log) $(field no_answer eval.log) $(field unknown_class eval.log)" \
  "41 43 1 1" "rows that are scored, and others"
check "no names: $(cat eval.err)" grep -q "odd.csv has no row with the columns' names" eval.err
check "no number: $(cat eval.err)" grep -q "1 cell of 'age' is no number: taken as missing" eval.err
check "no class: $(cat eval.err)" grep -q "none of the classes, the first in line 43: not scored" eval.err
"$SHOAL" eval one.safetensors --data shop.csv > eval.log 2> eval.err
check "its own table: $(cat eval.err)" grep -q "shop.csv is the table that the model was made from" eval.err

# What it is.
"$SHOAL" inspect one.safetensors > inspect.log
same $? 0 "inspect"
for words in "a model of 'shoal search'" "target    bought, 2 classes: no, yes" "shop.csv, 2,400 rows" \
  "accuracy 0." "expected on new rows" "  age     number " "share" "shoal predict one.safetensors --input"; do
  check "inspect says '$words': $(cat inspect.log)" grep -qF -- "$words" inspect.log
done
"$SHOAL" inspect one.safetensors --json > inspect.log
same "$(field target inspect.log) $(field problem inspect.log)" "bought binary" "inspect as JSON"
for command in eval predict inspect; do
  check "the help of $command has models of searches" grep -q "shoal search" <("$SHOAL" "$command" --help)
done
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
wrong 2 "not NAME=KIND" search shop.csv --target bought --columns "a,b=number"
wrong 2 "no kind of column" search shop.csv --target bought --columns age=colour
wrong 2 "cannot be changed with --resume" search shop.csv --resume --target age --out one.safetensors
wrong 2 "--seed cannot be changed" search shop.csv --resume --seed 2 --out one.safetensors
wrong 2 "--test-share cannot be changed" search shop.csv --resume --test-share 0.1 --out one.safetensors
wrong 1 "did you mean 'bought'" search shop.csv --target bougt
wrong 1 "rmse does not fit a binary problem; the usual metric is" search shop.csv --target bought --metric rmse
wrong 1 "there is no search to continue" search shop.csv --resume --out nothing.safetensors
wrong 1 "no such file" search none.csv --target x
wrong 2 "takes raw rows" eval one.safetensors --data new.csv --split test
check "nothing is left of what was refused" test ! -e best.search -a ! -e nothing.search
printf 'layers many\n' > bad.space
wrong 1 "bad.space:1" search shop.csv --target bought --space bad.space
wrong 1 "no such file" search shop.csv --target bought --test none.csv
check "nor of a space or a test file that is wrong" test ! -e best.search

# ---- what a person should know of a table ----
python3 - <<'PYTHON'
import random
draw = random.Random(5)
with open("rare.csv", "w") as file:
    file.write('"a,b",x,y\n')
    for i in range(200):
        kind = "odd" if i == 7 else draw.choice(["one", "two"])
        file.write(f"{i % 3},{draw.random():.3f},{'' if i in (3, 5) else kind}\n")
PYTHON
head -100 rare.csv > rare-test.csv
"$SHOAL" search rare.csv --target y --test rare-test.csv --columns '"a,b"=category' --trials 1 --epochs 1 --folds 1 \
  --out rare.safetensors > rare.log 2> rare.err
same $? 0 "a table with faults: $(cat rare.err)"
check "a name with a comma: $(cat rare.err)" grep -Eq "^  a,b  category" rare.err
check "rows without a target: $(cat rare.err)" grep -q "rare.csv: 2 rows have no value in 'y': left out" rare.err
check "test rows of the table: $(cat rare.err)" grep -q "99 of the 99 rows of rare-test.csv stand in rare.csv" rare.err
check "a rare class: $(cat rare.err)" grep -q "class 'odd' has 1 row, and none is among those that judge" rare.err
check "one trial, not trials: $(cat rare.log)" grep -q "^1 trial in .* made of the best one" rare.log
check "97 rows are scored: $(cat rare.log)" grep -q "on 97 rows" rare.log
printf 'a,b\n1,2\n' > thin.csv
wrong 1 "" search thin.csv --target b

# ---- a model takes no folder's place ----
mkdir models
wrong 2 "models: is a folder; give the name of a file in it" search shop.csv --target bought --out models
wrong 2 "models: is a folder" search shop.csv --target bought --table models
check "the folder is where it was" test -d models -a ! -e models.previous.safetensors -a ! -e models.search

# ---- what a new user's tables had ----
python3 - <<'PYTHON'
import random
draw = random.Random(5)
def table(name, header, rows):
    with open(name, "w") as file:
        file.write(header + "\n" + "".join(",".join(row) + "\n" for row in rows))
number = lambda: f"{draw.gauss(0, 1):.2f}"
table("skew.csv", "a,at,class", [(number(), f"{i % 24:02}:15:00", "ok" if i % 60 else "fraud") for i in range(300)])
table("nearly.csv", "a,y", [(number(), number() if i % 9 else "unknown") for i in range(300)])
table("lone.csv", "a,y", [(number(), "odd" if i == 7 else draw.choice(["one", "two"])) for i in range(200)])
weights = [f"{50 + i / 10:.1f} kg" if i % 2 else f"{5000 + 10 * i}0 g" for i in range(274)]
table("units.csv", "weight,y", [(weight, draw.choice("ab")) for weight in weights + weights[:26]])
words = "the quick brown fox jumps over a lazy dog until night falls again".split()
table("notes.csv", "note,y", [(" ".join(draw.choices(words, k=12)), draw.choice("ab")) for i in range(200)])
columns = [f"number {i}" for i in range(40)] + [f"Category{i}" for i in range(39)] + ["Order", "y"]
orders = draw.sample(range(1, 301), 300)
table("wide.csv", ",".join(columns), [[number() for c in range(40)] + [draw.choice("abc") for c in range(39)] +
                                      [str(orders[i]), draw.choice("ab")] for i in range(300)])
table("named.csv", "user_id,y", [(str(1000 + 7 * i), draw.choice("ab")) for i in range(100)])
PYTHON
brief=(--trials 2 --epochs 1)
"$SHOAL" search wide.csv --target y "${brief[@]}" --out wide.safetensors > wide.log 2> wide.err
same $? 0 "many columns: $(cat wide.err)"
same "$(grep -oE "(number|Category)[ ]?[0-9]+ \(" wide.err | sort -u | wc -l)" 79 "each of them is named: $(cat wide.err)"
check "in a few lines: $(cat wide.err)" test "$(grep -c "^  " wide.err)" -le 40
check "numbers of rows in another order: $(cat wide.err)" grep -q "the column is not used unless you give --columns 'Order=number'" wide.err
"$SHOAL" search wide.csv --target y --columns Order=number "${brief[@]}" --out wide.safetensors > wide.log 2>&1
check "unless it is said: $(cat wide.log)" grep -q "80 of 81 columns to learn from" wide.log
wrong 1 "no column to learn from" search named.csv --target y
check "what can be done: $(cat wrong.log)" grep -q -- "--columns 'user_id=number'" wrong.log
check "and nothing else: $(cat wrong.log)" bash -c '! grep -q "held-out rows" wrong.log'
wrong 1 "no column is called 'nope'; there are 'user_id', 'y'" search named.csv --target nope
"$SHOAL" search skew.csv --target class "${brief[@]}" --out skew.safetensors > skew.log 2> skew.err
same $? 0 "a skewed table: $(cat skew.err)"
check "f1 is of the rarer class: $(cat skew.log)" grep -q "f1 of 'fraud' 0.0000" skew.log
check "one class has nearly all: $(cat skew.err)" \
  grep -q "98.3% of the rows are of class 'ok', .* accuracy of 0.9833; --metric balanced-accuracy" skew.err
"$SHOAL" search skew.csv --target class "${brief[@]}" --json --out skew.safetensors > skew.log 2> /dev/null
check "as JSON" python3 -c "import json; assert any('0.9833' in r for r in json.loads(open('skew.log').readline())['remarks'])"
"$SHOAL" search skew.csv --target class --metric auc "${brief[@]}" --out skew.safetensors > /dev/null 2> skew.err
check "not with another measure: $(cat skew.err)" bash -c '! grep -q "0.9833" skew.err'
check "times of day: $(cat skew.err)" grep -q "  at .*00:15:00 to 23:15:00" skew.err
"$SHOAL" eval skew.safetensors --data skew.csv > eval.log 2> /dev/null
check "in eval, too: $(cat eval.log)" grep -q "f1 of 'fraud'" eval.log
"$SHOAL" inspect skew.safetensors > inspect.log
check "inspect has the scores of the test: $(cat inspect.log)" grep -q "^test .*f1 of 'fraud'.*on 60 rows that nothing else saw" inspect.log
same "$("$SHOAL" inspect skew.safetensors --json | python3 -c "import json; d = json.load(open(0)); print(d['positive'], d['test_rows'])")" \
  "fraud 60" "as JSON"
"$SHOAL" search skew.csv --resume --trials 1 --out skew.safetensors > skew.log 2> skew.err
check "fewer than there are: $(cat skew.err)" grep -q "2 are done already, and --trials 1 is" skew.err
wrong 1 "'class' is the target, and cannot be left out" search skew.csv --target class --columns class=skip
wrong 2 "is a model of 'shoal search'; continue with shoal search" train skew.safetensors
wrong 1 "'y' is a number in 266 of 300 rows, but 34 hold 'unknown'" search nearly.csv --target y
check "with the kinds: $(cat wrong.log)" grep -Eq "^  y  category" wrong.log
"$SHOAL" search nearly.csv --target y --columns y=number "${brief[@]}" --out nearly.safetensors > nearly.log 2> nearly.err
same $? 0 "a number where it is one: $(cat nearly.err)"
check "others are left out: $(cat nearly.err)" grep -q "34 rows have no number in 'y': left out" nearly.err
wrong 1 "class 'odd' has 1 row, too few for 5 folds" search lone.csv --target y
check "what helps: $(cat wrong.log)" grep -q -- "--folds 1" wrong.log
check "it does" "$SHOAL" search lone.csv --target y "${brief[@]}" --folds 1 --out lone.safetensors
wrong 1 "no value of 'weight' is frequent enough" search units.csv --target y "${brief[@]}"
check "two units: $(cat wrong.log)" grep -q "different units, such as .* kg' and .* g'\|different units, such as .* g' and .* kg'" wrong.log
"$SHOAL" search notes.csv --target y "${brief[@]}" --out notes.safetensors > notes.log 2>&1
"$SHOAL" export notes.safetensors --onnx notes.onnx > export.log
check "hashed texts: $(cat export.log)" grep -q "an input 'note.hashed'" export.log
finish
