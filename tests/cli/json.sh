#!/usr/bin/env bash
# What --json prints can be read by programs, and says what it should.
. "$(dirname "$0")/common.bash"
make_images images 256 64
make_text text.txt
make_table table.csv
make_models

# keys FILE KEY...: every line is a JSON object and the last one has the keys.
keys() {
  python3 - "$@" <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
missing = [key for key in sys.argv[2:] if key not in lines[-1]]
if missing:
    sys.exit(f"{sys.argv[1]}: no {missing} in {lines[-1]}")
PYTHON
}

"$SHOAL" train images.net --data images --json > train.json 2> err
same $? 0 "train --json"
same "$(cat err)" "" "train --json says nothing on standard error"
check "the last line of a training" keys train.json event epoch step loss accuracy test_loss test_accuracy \
  weights_sha256 out seconds
same "$(grep -c '"event":"epoch"' train.json)" 3 "one event an epoch"
check "the first line is the start" grep -q '"event":"start"' <(head -1 train.json)
same "$(field epoch train.json) $(field step train.json)" "3 24" "where the training ended"
same "$(field out train.json)" images.safetensors "the default of --out"
sed 's/adam rate 0.01/sgd rate 0.5\nwarmup 1/' images.net > warm.net
"$SHOAL" train warm.net --data images --epochs 1 --json > warm.json
check "a start has the recipe's rate, without the warm-up" grep -q '"rate":0.5,' <(head -1 warm.json)
"$SHOAL" train warm.net --data images --epochs 1 > warm.txt 2>&1
check "and tells people of it" grep -q "^sgd at rate 0.5 after a warm-up of 1 epoch, batch 32, " warm.txt

"$SHOAL" eval images.safetensors --data images --json > eval.json
check "eval --json" keys eval.json loss accuracy samples split macro classes matrix confused worst
check "its matrix has what its accuracy and its classes say" python3 -c '
import json
e = json.load(open("eval.json"))
assert sum(row[i] for i, row in enumerate(e["matrix"])) == round(e["accuracy"] * e["samples"])
assert [sum(row) for row in e["matrix"]] == [c["support"] for c in e["classes"]]
assert [sum(column) for column in zip(*e["matrix"])] == [c["predicted"] for c in e["classes"]]'
"$SHOAL" eval images.safetensors --data images > eval.txt
check "eval tells people of classes" grep -q "^class *precision *recall *f1 *samples$" eval.txt
check "of what is taken for what" grep -q "^Confusion matrix: " eval.txt
same "$(field loss eval.json)" "$(field test_loss train.json)" "eval repeats the training's test loss"
same "$(field accuracy eval.json)" "$(field test_accuracy train.json)" "and its accuracy"
same "$(field samples eval.json)" 64 "samples of eval"
for split in train valid test; do
  "$SHOAL" eval images.safetensors --data images --valid 0.25 --split $split --json > split.json
  same "$(field split split.json)" $split "eval --split $split"
done

# Classes that cannot be told apart, in batches larger than what a source gives at once.
python3 -c 'for i in range(1500): print(i * 7 % 11, i * 5 % 13, "abc"[i * i % 17 % 3], sep=",")' > hard.csv
printf 'input 2\ndense 4 relu\ndense 3\nloss cross-entropy\nbatch 3000\nepochs 2\n' > hard.net
"$SHOAL" train hard.net --data hard.csv --quiet
"$SHOAL" eval hard.safetensors --data hard.csv --split train > hard.txt
check "eval tells people of the worst" grep -q "^Most wrong:$" hard.txt
"$SHOAL" eval hard.safetensors --data hard.csv --split train --json > hard.json
"$SHOAL" predict hard.safetensors --data hard.csv --split train --json > answers.json
check "which predict has, by the same numbers" python3 -c '
import json
predicted = [json.loads(line) for line in open("answers.json")]
worst = json.load(open("hard.json"))["worst"]
assert len(worst) == 16
for w in worst:
    p = predicted[w["sample"]]
    assert not p["correct"] and (p["label"], p["class"]) == (w["label"], w["class"])'

"$SHOAL" predict images.safetensors --data images --count 5 --json > predict.json
same "$(wc -l < predict.json)" 5 "predict --count"
check "predict --json" keys predict.json sample class probability top label correct
"$SHOAL" predict images.safetensors --input images/t10k-images-idx3-ubyte --json > unlabeled.json
same "$(wc -l < unlabeled.json)" 64 "predict --input"
"$SHOAL" predict images.safetensors --data images --json --output file.json > out
same "$(wc -l < file.json) $(wc -c < out)" "64 0" "predict --output"

"$SHOAL" inspect images.safetensors --json > inspect.json
check "inspect --json of a checkpoint" keys inspect.json layers weights flops_forward flops_training \
  memory_bytes recipe epoch step weights_sha256
same "$(field weights_sha256 inspect.json)" "$(field weights_sha256 train.json)" "inspect and train agree"
"$SHOAL" inspect images.net --batch 7 --json > inspect.json
same "$(field batch inspect.json)" 7 "inspect --batch"

"$SHOAL" train chars.net --data chars:text.txt --json > chars.json
check "a text model" keys chars.json loss perplexity accuracy valid_perplexity test_perplexity
check "perplexity is e to the loss" python3 -c 'import json, math
last = json.loads(open("chars.json").read().splitlines()[-1])
assert abs(last["perplexity"] - math.exp(last["loss"])) < 1e-9 * last["perplexity"]'
"$SHOAL" eval chars.safetensors --data chars:text.txt --json > eval.json
same "$(field perplexity eval.json)" "$(field test_perplexity chars.json)" "eval repeats the perplexity"
# Nobody writes "The" in these texts; what is said at the end works as it is said.
{ echo "it's - what 'you' <say>"; for _ in $(seq 60); do echo "a b c d e it's you - \$HOME"; done; } > words.txt
sed 's/embed 10/embed 13/; s/^dense 10/dense 13/' chars.net > words.net
for kind in "chars chars:text.txt" "words text:words.txt"; do
  "$SHOAL" train "${kind% *}.net" --data "${kind#* }" --out next.safetensors --epochs 1 > next.out
  next=$(sed -n 's/^  \(.* predict .*\)/\1/p' next.out)
  check "${kind% *}: a prompt is proposed: $next" grep -q -- "--prompt" <<< "$next"
  check "${kind% *}: and the model takes it: $next" eval "$next > next.text"
done
"$SHOAL" predict chars.safetensors --prompt "abba " --length 40 --json > text.json
check "predict --prompt --json" keys text.json prompt text
"$SHOAL" predict chars.safetensors --prompt "abba " --length 40 > text.out
check "the text starts with the prompt" grep -q "^abba " text.out
same "$("$SHOAL" predict chars.safetensors --prompt "abba " --length 40)" "$(cat text.out)" "one seed, one text"
"$SHOAL" predict chars.safetensors --prompt "abba " --length 40 --seed 2 > other.out
check "another seed, another text" test "$(cat text.out)" != "$(cat other.out)"

"$SHOAL" train images.net --data images --batch 4096 --epochs 1 --out large.safetensors --json > large.json
check "a batch larger than the data: $(grep note large.json)" \
  grep -q '"event":"note","text":"the batch size 4,096 is larger than the [0-9,]* training samples, so every epoch is a single round' large.json
check "others are not told so" bash -c '! grep -q "the batch size" train.json'
sed 's/^dense .*/dense 5/' images.net > wide.net
"$SHOAL" train wide.net --data images --epochs 1 --out wide.safetensors --json > wide.json
check "more outputs than classes: $(grep note wide.json)" \
  grep -q '"event":"note","text":"the model has 5 outputs, the data 3 classes: the last 2 will never be right' wide.json
check "nor are they told that" bash -c '! grep -q "never be right" train.json'

"$SHOAL" train table.net --data table.csv --json > table.json
check "a regression" keys table.json loss rmse test_rmse
"$SHOAL" predict table.safetensors --data table.csv --count 2 --json > predict.json
check "predict numbers" keys predict.json sample values targets
printf 'b,a\n0.5,0.25\n' > new.csv
"$SHOAL" predict table.safetensors --input new.csv --json > predict.json
same "$(wc -l < predict.json)" 1 "predict rows without a target, columns in another order"

"$SHOAL" bench train --net mlp --seconds 0.2 --json > bench.json
check "bench --json" keys bench.json batches_per_s samples_per_s gflops peak_gflops peak_share resident_mb \
  first_update_s
"$SHOAL" version --json > version.json
check "version --json" keys version.json version kernels
"$SHOAL" data list --json > data.json
check "data list --json" keys data.json name what here
"$SHOAL" export images.safetensors --onnx images.onnx > out
check "export writes a file" test -s images.onnx
"$SHOAL" export images.safetensors --onnx again.onnx --json > export.json
same $? 0 "export --json"
check "export --json" keys export.json out format model input
same "$(field out export.json) $(field input export.json)" "again.onnx 1x8x8" "what was written where"
same "$(wc -l < export.json)" 1 "and nothing else"
check "the same file" cmp images.onnx again.onnx
"$SHOAL" train images.net --data images --quiet --log-dir logs > out 2>&1
same "$(cat out)" "" "train --quiet"
check "train --log-dir writes an event file" test -s logs/events.out.tfevents.*
finish
