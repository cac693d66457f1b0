#!/usr/bin/env bash
# Whatever a person or a file gets wrong: the right exit status, a message that names the place
# and what to do, and no half-written file.
. "$(dirname "$0")/common.bash"
make_images images 256 64
make_text text.txt
make_table table.csv
make_models
"$SHOAL" train images.net --data images --quiet --epochs 1 --out good.safetensors || fail "the good model"
"$SHOAL" train chars.net --data chars:text.txt --quiet --epochs 1 --out text.safetensors || fail "the text model"
mkdir bad

# bad STATUS FRAGMENT WORD...: shoal with these words fails with that status, and its message has
# the fragment. Files that were not there before must not be there afterwards.
bad() {
  local status=$1 fragment=$2
  shift 2
  checks=$((checks + 1))
  local before got
  before=$(find . -newer images.net -type f ! -name out ! -name err | sort)
  patiently "$SHOAL" "$@" > out 2> err
  got=$?
  [ $got -eq "$status" ] || fail "shoal $*: status $got, not $status; $(cat err)"
  grep -qF -- "$fragment" err || fail "shoal $*: no '$fragment' in: $(cat err)"
  grep -q "^shoal" err || fail "shoal $*: the message does not start with 'shoal': $(cat err)"
  if grep -qi "sanitizer\|assert\|runtime error" err; then
    fail "shoal $*: $(cat err)"
  fi
  same "$(find . -newer images.net -type f ! -name out ! -name err | sort)" "$before" "files left by shoal $*"
}

# net NAME LINE...: a model text, bad/NAME.net.
net() {
  local name=$1
  shift
  printf '%s\n' "$@" > "bad/$name.net"
}

# ---- commands and options ----
bad 2 "unknown command 'trian'; did you mean 'train'?" trian
bad 2 "unknown command 'elephant'" elephant
bad 2 "unknown option '--verison'" --verison
bad 2 "unknown command 'trane'" help trane
bad 2 "unknown option '--epoch'; did you mean '--epochs'?" train images.net --data images --epoch 3
# What users of Keras and PyTorch type: pairs of a foreign option and ours.
for pair in lr=rate learning-rate=rate learning_rate=rate batch-size=batch batch_size=batch bs=batch optim=optimizer \
  num-epochs=epochs num-workers=threads weight-decay=l2 wd=l2 val-split=valid validation_split=valid \
  checkpoint=resume output=out output_dir=out dataset=data patience=early-stop grad-clip=clip logdir=log-dir \
  random-state=seed lr_scheduler=schedule save-steps=save-every label=target world-size=workers \
  learningRate=rate batchSize=batch batchsize=batch BATCH_SIZE=batch clip-grad=clip augmentation=augment model-dir=out \
  lr-decay=schedule; do
  bad 2 "unknown option '--${pair%=*}'; did you mean '--${pair#*=}'?" train images.net --data images --"${pair%=*}" 1
done
bad 2 "unknown option '--device'; Shoal computes on CPUs only" train images.net --data images --device cuda
bad 2 "unknown option '--gpus'; Shoal computes on CPUs only" train images.net --data images --gpus 2
bad 2 "give it with the optimizer: --optimizer \"momentum rate" train images.net --data images --momentum 0.9
bad 2 "the loss is a line of the model's text" train images.net --data images --loss mse
bad 2 "give the model file without an option" train --model images.net --data images
bad 2 "write \`adam rate 0.001\`" train images.net --data images --optimizer "Adam(lr=0.001)"
bad 2 "unknown option '-o'; did you mean '--out'?" train images.net --data images -o model
# What Shoal does not have, or has elsewhere: the flag and a part of what is said.
while IFS='|' read -r words flag says; do
  # shellcheck disable=SC2086
  bad 2 "unknown option '$flag'; $says" $words "$flag" x
done <<'END'
train images.net|--flip|images are changed with --augment: --augment flip
train images.net|--eval-every|the model is evaluated after every epoch
train images.net|--decay|weight decay is --l2;
train images.net|--max-steps|--epochs says how long
train images.net|--gradient-accumulation-steps|--batch says how many samples
train images.net|--wandb|--log-dir writes TensorBoard files
train images.net|--callbacks|there are --early-stop
train images.net|--init|it is a word of a layer's line
train images.net|--master-addr|`shoal launch` starts
train images.net|--rank|`shoal launch` starts
train images.net|--cpu|Shoal computes on CPUs only
work|--server|give the link without an option
work|--token|a token is the end of the link
status|--token|a token is the end of the link
serve|--token|the server makes tokens itself
serve|--cert|did you mean '--certificate'?
serve|--https|did you mean '--tls'?
eval|--input|--data says which samples
eval|--test|--data says which samples
eval|--model|give the model file without an option
predict|--image|did you mean '--input'?
predict|--file|did you mean '--input'?
export|--output|did you mean '--onnx'?
export|--out|did you mean '--onnx'?
search|--data|give the table without an option
agent train|--episodes|--steps or --seconds says how long
agent train|--render|`shoal agent play` shows
END
bad 2 "unknown option '--opne'" serve --opne host
check "nobody is told to open a server" bash -c '! grep -q "did you mean" err'
bad 2 "unknown option '--port'; did you mean '--listen'?" serve --port 80
bad 2 "unknown option '--time-limit'; did you mean '--budget'?" search images.csv --time-limit 60
bad 2 "unknown option '--lr'; the search chooses this setting itself; --space limits what it may choose from" search images.csv --lr 0.1
bad 2 "unknown option '--cv'; did you mean '--folds'?" search images.csv --cv 5
bad 2 "unknown option '--gamma'; settings of the algorithm are given with --set" agent train --env CartPole-v1 --gamma 0.9
bad 2 "unknown option '--lr'; did you mean '--rate'?" host images.net --data images --lr 0.1
bad 2 "unknown command 'evaluate'; did you mean 'eval'?" evaluate
bad 2 "unknown command 'fit'; did you mean 'train'?" fit
bad 2 "MODEL.net is missing" train
bad 2 "--data is missing" train images.net
bad 2 "--data needs a value" train images.net --data
bad 2 "--data needs a value" train images.net --data --epochs 3
bad 2 "unexpected argument 'more'" train images.net more --data images
bad 2 "--quiet takes no value" train images.net --data images --quiet=yes
bad 2 "--threads: 0 is out of range" train images.net --data images --threads 0
bad 2 "--threads: 'two' is not a whole number" train images.net --data images --threads two
bad 2 "--save-every: -1 is out of range" train images.net --data images --save-every -1
bad 2 "--valid: '1.5' is not a share" train images.net --data images --valid 1.5
bad 2 "--valid: 'half' is not a share" train images.net --data images --valid half
bad 2 "--epochs" train images.net --data images --epochs ten
bad 2 "--epochs" train images.net --data images --epochs 0
bad 2 "--batch" train images.net --data images --batch -5
bad 2 "--seed" train images.net --data images --seed 1.5
bad 2 "--rate" train images.net --data images --rate -0.1
bad 2 "--rate" train images.net --data images --rate nan
bad 2 "--optimizer" train images.net --data images --optimizer adams
bad 2 "--schedule" train images.net --data images --schedule sometimes
bad 2 "--clip" train images.net --data images --clip -1
bad 2 "--l2" train images.net --data images --l2 -0.5
bad 2 "MODEL.safetensors is missing" eval
bad 2 "--data is missing" eval good.safetensors
bad 2 "--split: 'exam' is not one of train, valid or test" eval good.safetensors --data images --split exam
bad 2 "--batch: 0 is out of range" eval good.safetensors --data images --batch 0
bad 2 "give one of --data, --input and --prompt" predict good.safetensors
bad 2 "give only one of" predict good.safetensors --data images --prompt abba
bad 2 "--temperature: -1 is out of range" predict text.safetensors --prompt abba --temperature -1
bad 2 "--onnx FILE is missing" export good.safetensors
bad 2 "what to do (list, info or get) is missing" data
bad 2 "unknown action 'fetch'" data fetch
bad 2 "the name of a set is missing" data get
bad 2 "what to measure (train, gemm, ps, scaling, platform, data, attack or envs) is missing" bench
bad 2 "unknown measurement 'sleep'; there are train, gemm, ps, scaling, platform, data, attack and envs" bench sleep
bad 2 "unknown option '--per-layer'" bench gemm --per-layer
bad 2 "--seconds: 0 is out of range" bench gemm --seconds 0
bad 2 "did you mean '--per-layer'?" bench train --per-layers
bad 1 "did you mean 'mnist'?" data info mnits

# ---- files that are not there or not what they should be ----
bad 1 "none.net: no such file" train none.net --data images
bad 1 "none.net: no such file" inspect none.net
bad 1 "none.safetensors" eval none.safetensors --data images
bad 1 "none.safetensors" train --resume none.safetensors --data images
bad 1 "images" train images --data images
bad 2 "to continue from it, write --resume good.safetensors" train good.safetensors --data images
bad 1 "has no weights; train it first" eval images.net --data images
bad 1 "has no weights; train it first" export images.net --onnx x.onnx
bad 1 "no data set or file is called 'nowhere'" train images.net --data nowhere
bad 1 "did you mean 'mnist'?" train images.net --data mnits
mkdir bad/empty
bad 1 "no data in this folder" train images.net --data bad/empty
bad 1 "toy:reverse" train images.net --data toy:elephant
bad 1 "no-such-net" bench train --net no-such-net --seconds 0.1
bad 1 "unknown environment 'CartPol-v1'; did you mean 'CartPole-v1'?" bench envs --env CartPol-v1
bad 2 "--count: 0 is out of range" bench envs --count 0
cp images.net bad/locked.net
chmod 000 bad/locked.net
[ "$(id -u)" -eq 0 ] || bad 1 "Permission denied" train bad/locked.net --data images

# ---- model texts ----
net unknown "input 4" "dens 3" "loss cross-entropy"
bad 1 "did you mean 'dense'?" train bad/unknown.net --data images
bad 1 "unknown.net:2:1" inspect bad/unknown.net
net empty ""
bad 1 "without an input" inspect bad/empty.net
net no-loss "input 1x8x8" "dense 3"
bad 1 "without a loss" inspect bad/no-loss.net
net big-window "input 1x8x8" "conv 4 9x9" "dense 3" "loss cross-entropy"
bad 1 "big-window.net:2" inspect bad/big-window.net
net huge "input 1x8x8" "dense 2000000000" "dense 3" "loss cross-entropy"
bad 1 "huge.net:2" inspect bad/huge.net
net vector-conv "input 64" "conv 4 3x3" "dense 3" "loss cross-entropy"
bad 1 "vector-conv.net:2" inspect bad/vector-conv.net
net twice "input 4" "input 5" "dense 3" "loss cross-entropy"
bad 1 "a second input" inspect bad/twice.net
net no-name "input 4" "dense 4 from above" "dense 3" "loss cross-entropy"
bad 1 "no line above is named 'above'" inspect bad/no-name.net
head -c 100000 /dev/urandom > bad/noise.net
bad 1 "noise.net:" inspect bad/noise.net
head -c 1048577 /dev/zero > bad/long.net
bad 1 "long.net: the text is longer than 1,048,576 bytes" inspect bad/long.net
bad 1 "bad/lenet5.onnx: Shoal writes ONNX and does not read it" inspect bad/lenet5.onnx
bad 1 "bad/lenet5.onnx: Shoal writes ONNX and does not read it" eval bad/lenet5.onnx --data images

# ---- models that do not fit the data ----
net wrong-image "input 1x9x9" "dense 3" "loss cross-entropy"
bad 1 "images of 1x8x8, but the model's input is 1x9x9" train bad/wrong-image.net --data images
net few-classes "input 1x8x8" "dense 2" "loss cross-entropy"
bad 1 "has 3 classes, but the model's output is 2" train bad/few-classes.net --data images
net few-words "input tokens 12" "embed 5 8" "lstm 16" "dense 5" "loss cross-entropy"
bad 1 "vocabulary too large" train bad/few-words.net --data chars:text.txt
net tokens "input 4" "dense 3" "loss cross-entropy"
bad 1 "tokens" train bad/tokens.net --data chars:text.txt
bad 1 "2 feature columns" train bad/tokens.net --data table.csv
bad 1 "height" train table.net --data table.csv --target height
bad 1 "\`augment\` needs images; leave out the line or flag" train table.net --data table.csv --augment flip
bad 1 "early stopping needs validation samples" train images.net --data images --early-stop 3
net weights "input 1x8x8" "dense 3" "loss cross-entropy" "class-weights 1 2"
bad 1 "2 weights for 3 classes" train bad/weights.net --data images
net number "input 2" "dense 1" "loss mean-squared" "class-weights balanced"
bad 1 "class-weights" train bad/number.net --data table.csv

# ---- damaged data ----
# broken NAME PYTHON: a folder of images whose files were changed by a piece of Python.
broken() {
  cp -r images "bad/$1"
  (cd "bad/$1" && python3 -c "
import os, struct
images, labels = 'train-images-idx3-ubyte', 'train-labels-idx1-ubyte'
def patch(name, at, data):
    with open(name, 'r+b') as file:
        file.seek(at)
        file.write(data)
$2")
}
broken cut "os.truncate(images, 5000)"
bad 1 "train-images-idx3-ubyte" train images.net --data bad/cut
broken stub "os.truncate(images, 3)"
bad 1 "train-images-idx3-ubyte" train images.net --data bad/stub
broken magic "patch(images, 0, b'\\0\\0\\x0b\\3')"
bad 1 "train-images-idx3-ubyte" train images.net --data bad/magic
broken count "patch(images, 4, struct.pack('>i', 2000000000))"
bad 1 "train-images-idx3-ubyte" train images.net --data bad/count
broken negative "patch(images, 8, struct.pack('>i', -8))"
bad 1 "train-images-idx3-ubyte" train images.net --data bad/negative
broken no-labels "os.remove(labels)"
bad 1 "train-labels-idx1-ubyte" train images.net --data bad/no-labels
broken few-labels "patch(labels, 4, struct.pack('>i', 9)); os.truncate(labels, 17)"
bad 1 "labels" train images.net --data bad/few-labels
broken label "patch(labels, 8, b'\\xc8')"
bad 1 "201 classes, but the model's output is 3" train images.net --data bad/label
broken gzip "open(images + '.gz', 'wb').write(b'\\x1f\\x8b\\x08garbage'); os.remove(images)"
bad 1 "train-images-idx3-ubyte.gz" train images.net --data bad/gzip
printf 'a,b,y\n1,2,3\n4,5\n' > bad/ragged.csv
bad 1 "ragged.csv:3" train table.net --data bad/ragged.csv
printf 'a,b,y\n1,two,3\n4,5,6\n' > bad/word.csv
bad 1 "word.csv" train table.net --data bad/word.csv
printf 'a,b,y\n"1,2,3\n' > bad/quote.csv
bad 1 "quote.csv" train table.net --data bad/quote.csv
: > bad/nothing.csv
bad 1 "nothing.csv" train table.net --data bad/nothing.csv
printf 'ab\xff\xfecd\n' > bad/latin.txt
bad 1 "latin.txt" train chars.net --data chars:bad/latin.txt
: > bad/nothing.txt
bad 1 "nothing.txt" train chars.net --data chars:bad/nothing.txt

# Images without labels have no answers to compare with.
cp images/t10k-images-idx3-ubyte bad/alone-images-idx3-ubyte
bad 1 "there is no file of labels beside it" eval good.safetensors --data bad/alone-images-idx3-ubyte
bad 1 "shoal predict --input" predict good.safetensors --data bad/alone-images-idx3-ubyte
check "they can be predicted" "$SHOAL" predict good.safetensors --input bad/alone-images-idx3-ubyte > out

# ---- damaged checkpoints ----
# damaged NAME PYTHON: good.safetensors, changed by a piece of Python with `raw` its bytes, `header`
# its JSON and `data` the rest; `put()` writes header and data.
damaged() {
  python3 -c "
import json, struct
raw = bytearray(open('good.safetensors', 'rb').read())
length = struct.unpack('<Q', raw[:8])[0]
header, data = json.loads(raw[8:8 + length]), raw[8 + length:]
meta = header['__metadata__']
out = open('bad/$1.safetensors', 'wb')
def put():
    text = json.dumps(header).encode()
    out.write(struct.pack('<Q', len(text)) + text + data)
$2"
}
damaged cut "out.write(raw[:len(raw) // 2])"
bad 1 "bad/cut.safetensors" eval bad/cut.safetensors --data images
damaged empty "pass"
bad 1 "bad/empty.safetensors" eval bad/empty.safetensors --data images
damaged noise "out.write(bytes(range(256)) * 40)"
bad 1 "not a safetensors file" inspect bad/noise.safetensors
# Files of other programs, named by what they begin with.
python3 - <<'END'
import zipfile
zipfile.ZipFile("bad/a.pt", "w").writestr("data.pkl", "x" * 99)
for name, front in (("a.h5", b"\x89HDF\r\n\x1a\n"), ("a.png", b"\x89PNG\r\n\x1a\n"), ("a.csv", b"a,b\n1,2\n")):
    open("bad/" + name, "wb").write(front + bytes(99 if name != "a.csv" else 0))
END
for pair in "a.pt:a zip archive, as PyTorch and Keras write them" "a.h5:an HDF5 file" "a.png:a PNG image" "a.csv:a text"; do
  for words in "eval FILE --data images" "predict FILE --data images" "export FILE --onnx bad.onnx" "train --resume FILE --data images"; do
    # shellcheck disable=SC2086
    bad 1 "bad/${pair%%:*}: this is ${pair#*:}" ${words/FILE/bad/${pair%%:*}}
  done
done
bad 1 "bad/a.pt: this is a zip archive" inspect bad/a.pt
bad 1 "images.net describes a network, but has no weights; train it first" train --resume images.net --data images
damaged length "raw[:8] = struct.pack('<Q', 1 << 62); out.write(raw)"
bad 1 "bad/length.safetensors" inspect bad/length.safetensors
damaged json "raw[20] = 0; out.write(raw)"
bad 1 "bad/json.safetensors" inspect bad/json.safetensors
damaged tail "out.write(raw + b'extra')"
bad 1 "bad/tail.safetensors" predict bad/tail.safetensors --data images
damaged foreign "header['__metadata__'] = {'format': 'pt'}; put()"
bad 1 "not one that Shoal wrote" eval bad/foreign.safetensors --data images
damaged version "meta['shoal.version'] = '99'; put()"
bad 1 "version '99'" eval bad/version.safetensors --data images
damaged model "meta['shoal.model'] = 'input 5\nloss nothing'; put()"
bad 1 "bad/model.safetensors" eval bad/model.safetensors --data images
damaged bit "data[100] ^= 1; put()"
bad 1 "do not match their checksum" eval bad/bit.safetensors --data images
bad 1 "do not match their checksum" export bad/bit.safetensors --onnx bad.onnx
bad 1 "do not match their checksum" train --resume bad/bit.safetensors --data images
damaged missing "header['other'] = header.pop('conv1.bias'); put()"
bad 1 "'conv1.bias'" eval bad/missing.safetensors --data images
damaged shape "header['conv1.bias']['shape'] = [2, 3]; put()"
bad 1 "'conv1.bias'" eval bad/shape.safetensors --data images
damaged offsets "header['conv1.bias']['data_offsets'] = [0, 1 << 40]; put()"
bad 1 "'conv1.bias'" eval bad/offsets.safetensors --data images
damaged dtype "header['conv1.bias']['dtype'] = 'F13'; put()"
bad 1 "F13" eval bad/dtype.safetensors --data images
damaged position "meta['shoal.position'] = '{\"epoch\": -1}'; put()"
bad 1 "shoal.position" train --resume bad/position.safetensors --data images --epochs 3
damaged slot "header['other'] = header.pop('optimizer.1.conv1.bias'); put()"
bad 1 "optimizer.1.conv1.bias" train --resume bad/slot.safetensors --data images --epochs 3
damaged fitted "meta['shoal.data'] = '{}'; put()"
bad 1 "bad/fitted.safetensors" eval bad/fitted.safetensors --data images

# A vocabulary larger than the embedding: its last words have no row in the table.
sed 's/^dense.*/dense 20/' chars.net > wide.net
"$SHOAL" train wide.net --data chars:text.txt --quiet --epochs 1 --out wide.safetensors || fail "the wide model"
mv good.safetensors aside && cp wide.safetensors good.safetensors
damaged words "
fitted = json.loads(meta['shoal.data'])
fitted['vocabulary'] += list('uvwxyz')
meta['shoal.data'] = json.dumps(fitted)
put()"
mv aside good.safetensors
bad 1 "its data has 15 words, but the model takes 10" predict bad/words.safetensors --prompt z --length 5

# ---- going on with something else ----
bad 2 "--seed cannot change" train --resume good.safetensors --data images --seed 5
bad 2 "--batch cannot change" train --resume good.safetensors --data images --batch 16
bad 2 "--optimizer cannot change" train --resume good.safetensors --data images --optimizer sgd
bad 2 "--shards cannot change" train --resume good.safetensors --data images --shards 3
bad 1 "is not the network in good.safetensors" train table.net --resume good.safetensors --data images
bad 1 "is not what good.safetensors was trained on" train --resume good.safetensors --data images --valid 0.5
bad 1 "2 feature columns" train --resume good.safetensors --data table.csv
bad 1 "would be read as a table, but the model was trained on images" eval good.safetensors --data table.csv
bad 1 "is no text model" predict good.safetensors --prompt abba
bad 1 "nope.png: no such file; text.safetensors was trained on a text: give --prompt TEXT" \
  predict text.safetensors --input nope.png
bad 1 "is not in the vocabulary of the training text; it has '" predict text.safetensors --prompt "zebra"
bad 1 "no valid samples" eval good.safetensors --data images --split valid

# ---- places that cannot be written ----
bad 1 "its folder does not exist" train images.net --data images --out nowhere/model.safetensors
bad 1 "is a folder" train images.net --data images --out bad
bad 1 "images.net would be overwritten" train images.net --data images --out images.net
bad 1 "table.csv would be overwritten" train table.net --data table.csv --out table.csv
bad 1 "table.csv would be overwritten" predict good.safetensors --data table.csv --output table.csv
bad 1 "good.safetensors would be overwritten" predict good.safetensors --data images --output good.safetensors
bad 1 "good.safetensors would be overwritten" export good.safetensors --onnx good.safetensors
bad 1 "images.net would be overwritten" bench train --net images.net --losses images.net
bad 1 "no space left" train images.net --data images --out /dev/full --epochs 1
bad 1 "no space left" export good.safetensors --onnx /dev/full
bad 1 "no space left" predict good.safetensors --data images --output /dev/full
bad 1 "its folder does not exist" export good.safetensors --onnx nowhere/model.onnx
bad 1 "images.net" train images.net --data images --log-dir images.net/logs

# A disk that fills up: files may not grow beyond a block.
full() {
  (
    trap '' XFSZ
    ulimit -f 1
    bad "$@"
    [ "$failures" -eq 0 ]
  ) || failures=$((failures + 1))
  checks=$((checks + 1))
}
full 1 "cannot save the model" train images.net --data images --quiet
full 1 "export" export good.safetensors --onnx model.onnx

# Standard output that is full is a failure too.
for words in "inspect good.safetensors" "version" "train --help" "help" "eval good.safetensors --data images"; do
  # shellcheck disable=SC2086
  "$SHOAL" $words > /dev/full 2> err
  same $? 1 "the status of shoal $words > /dev/full"
  check "the message of shoal $words > /dev/full" grep -q "standard output: No space left on device" err
done

# ---- a loss that explodes ----
sed 's/^optimizer.*/optimizer sgd rate 1e9/' table.net > bad/wild.net
bad 1 "the loss is not a number in epoch 1" train bad/wild.net --data table.csv
check "it says what to try" grep -q "try a lower --rate or --clip" err
check "and that nothing was saved" grep -q "Nothing was saved" err
# The last good checkpoint stays.
"$SHOAL" train table.net --data table.csv --quiet --epochs 1 --out kept.safetensors --optimizer sgd
cp kept.safetensors before.safetensors
bad 1 "the loss is not a number" train --resume kept.safetensors --data table.csv --epochs 50 --rate 1e9
check "it names the checkpoint that stays" grep -q "kept.safetensors still holds the model" err
check "which can be used" "$SHOAL" eval kept.safetensors --data table.csv > out

# Weights that overflow while the loss is still finite: here in the third round, the epoch's last.
cat > bad/overflow.net <<'NET'
input 64
dense 3 no-bias
loss cross-entropy
optimizer sgd rate 1e9
l2 1e9
batch 96
epochs 2
NET
bad 1 "the weights are not numbers any more after round 3" train bad/overflow.net --data images
check "nothing was saved of them" grep -q "Nothing was saved" err

# ---- the environment ----
SHOAL_KERNELS=abacus "$SHOAL" train images.net --data images > out 2> err
same $? 1 "the status with SHOAL_KERNELS=abacus"
check "the message names SHOAL_KERNELS" grep -q "SHOAL_KERNELS" err
finish
