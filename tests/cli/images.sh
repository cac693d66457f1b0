#!/usr/bin/env bash
# Folders of PNG files, a subfolder for each class: training, evaluating, predicting single files.
. "$(dirname "$0")/common.bash"
make_models

make_pngs bands 240 0
make_pngs fresh 30 1000
echo about > bands/top/notes.txt

# refuses WORDS COMMAND...: the command must fail and say so.
refuses() {
  local words=$1
  shift
  checks=$((checks + 1))
  "$@" > out 2> err && fail "$* should fail"
  grep -qF -- "$words" err || fail "$*: '$words' is not in: $(cat err)"
}

"$SHOAL" train images.net --data bands --out one.safetensors > out 2> err || fail "train: $(cat err)"
check "it says what is done to images" \
  grep -qF "images of 8x8 to 20x16 are scaled to 8x8, cropped to the centre, and those in colour made grey" out
check "what is no image is named" grep -qF "skipped one file that is not a PNG or JPEG file: bands/top/notes.txt" out
check "a part is held out" grep -q "bands: 1[89][0-9] training, [45][0-9] test samples" out
"$SHOAL" eval one.safetensors --data bands --json > eval.json || fail "eval"
check "the part that was held out is evaluated" grep -qE '"accuracy":(0\.9|1).*"samples":[45][0-9],' eval.json
"$SHOAL" eval one.safetensors --data fresh --json > eval.json || fail "eval of another folder"
same "$(field samples eval.json)" 30 "all of another folder is evaluated"

for split in train test; do
  "$SHOAL" predict one.safetensors --data bands --split $split --json > answers.json || fail "predict --split $split"
  check "every file of $split is told with its own class" python3 -c 'import json
lines = [json.loads(line) for line in open("answers.json")]
assert len({line["file"] for line in lines}) == len(lines) > 30
assert all(line["file"].split("/")[1] == line["label"] for line in lines)'
done
mkdir -p mixed/top mixed/middle && cp fresh/bottom/1001.png mixed/top && cp fresh/middle/1000.png mixed/middle
check "the file that is most wrong is named" grep -q "^mixed/top/1001.png  bottom" <("$SHOAL" eval one.safetensors --data mixed)
check "in JSON, too" grep -q '"file":"mixed/top/1001.png"' <("$SHOAL" eval one.safetensors --data mixed --json)

"$SHOAL" predict one.safetensors --input fresh/top/1002.png fresh/middle/1000.png > out 2> err ||
  fail "predict: $(cat err)"
check "files and classes are printed" grep -qE "^fresh/top/1002.png     top +[01]\.[0-9]{3}" out
cp fresh/top/1002.png $'odd\e[31m.png' && cp fresh/top/1002.png $'h\xc3\xa4user-12.png'
"$SHOAL" predict one.safetensors --input odd*.png h*user-12.png > odd.txt 2> err || fail "predict odd names: $(cat err)"
check "a name is plain on a terminal, and padded by its characters: $(cat -v odd.txt)" \
  bash -c 'grep -q "^odd?\[31m.png   *top" odd.txt && grep -q "^h..user-12.png  top" odd.txt'
check "of every file" grep -qE "^fresh/middle/1000.png  middle +[01]\.[0-9]{3}" out
"$SHOAL" predict one.safetensors --input fresh/bottom --json --output answers.json || fail "predict a folder"
same "$(grep -c '"file":"fresh/bottom/[0-9]*.png","class":"bottom"' answers.json)" 10 "a folder's files"

cp fresh/top/1002.png noname && "$SHOAL" predict one.safetensors --input noname > out 2> err || fail "a PNG without a name: $(cat err)"
printf 'GIF89a\1\0\1\0' > r.gif && printf 'RIFF\20\0\0\0WEBPVP8 ' > r.webp
refuses "r.gif: a GIF image is not read; convert it to PNG" "$SHOAL" predict one.safetensors --input r.gif
refuses "r.webp: a WebP image is not read; convert it to PNG" "$SHOAL" predict one.safetensors --input r.webp
mkdir -p web/a web/b && cp r.webp web/a && cp r.webp web/b
refuses "/r.webp is a WebP image: convert it to PNG" "$SHOAL" train images.net --data web
cp fresh/top/1002.png web/a && cp noname web/b
refuses "web/b: this class has no images: no file in it ends in .png, .jpg or .jpeg; web/b/" "$SHOAL" train images.net --data web
printf 'BM,GIF8\n1,2\n' > bm.csv
refuses "bm.csv would be read as a table" "$SHOAL" predict one.safetensors --input bm.csv
refuses "bands/top/0000.png is one image" "$SHOAL" train images.net --data bands/top/0000.png
refuses "bands/top/0000.png is one image" "$SHOAL" host images.net --data bands/top/0000.png --server http://127.0.0.1:1
refuses "\`augment crop 8\` can move images of 8x8 out of sight; give less than 8" \
  "$SHOAL" train images.net --data bands --augment "crop 8"
printf 'input 8x8x1\ndense 3\nloss cross-entropy\n' > last.net
refuses "a model with \`input 1x8x8\` takes them" "$SHOAL" train last.net --data bands
refuses "holds image files without classes" "$SHOAL" train images.net --data bands/top
echo 1,2,3 > x.csv
refuses "x.csv would be read as a table, but the model was trained on images" \
  "$SHOAL" predict one.safetensors --input x.csv
refuses "several files can be given to --input when they are PNG" "$SHOAL" predict one.safetensors --input x.csv x.csv
refuses "nope.png: no such file; one.safetensors was trained on images: give PNG or JPEG files" \
  "$SHOAL" predict one.safetensors --input nope.png bands/top/0000.png
make_table table.csv
"$SHOAL" train table.net --data table.csv --out table.safetensors --quiet || fail "train a table"
refuses "bands/top/0000.png has images, but the model was trained on a table" \
  "$SHOAL" predict table.safetensors --input bands/top/0000.png
refuses "nope.png: no such file; table.safetensors was trained on a table: give FILE.csv" \
  "$SHOAL" predict table.safetensors --input nope.png
cp -r bands broken
head -c 90 bands/middle/0001.png > broken/middle/0001.png
refuses "broken/middle/0001.png: the PNG is broken" "$SHOAL" train images.net --data broken
mkdir broken/side
refuses "broken/side: this class has no images" "$SHOAL" train images.net --data broken

# The same bits, however many threads and processes.
sha() { "$SHOAL" train images.net --data bands --out "$1" --json "${@:2}" > out.json || fail "train $*"; field weights_sha256 out.json; }
plain=$(sha 1.safetensors --threads 1)
check "what is done to images is told in JSON, too" grep -q '"event":"note","text":"images of 8x8 to 20x16' out.json
same "$(sha 2.safetensors --threads 2)" "$plain" "weights with two threads"
same "$(sha 3.safetensors --workers 2)" "$plain" "weights with two workers"

# Augmentation is part of the result, and only that: threads, processes and pauses are not.
changed=$(sha 1.safetensors --threads 1 --augment "flip crop 2")
[ "$changed" != "$plain" ] || fail "augment changes nothing"
same "$(sha 2.safetensors --threads 2 --augment "flip crop 2")" "$changed" "augmented weights with two threads"
same "$(sha 3.safetensors --workers 2 --augment "flip crop 2")" "$changed" "augmented weights with two workers"
"$SHOAL" train images.net --data bands --out 4.safetensors --augment "flip crop 2" --epochs 1 --quiet || fail "one epoch"
"$SHOAL" train --resume 4.safetensors --data bands --epochs 3 --json > out.json || fail "going on"
same "$(field weights_sha256 out.json)" "$changed" "augmented weights after going on"
refuses "--augment cannot change" "$SHOAL" train --resume 4.safetensors --data bands --augment none
refuses "\`augment\` needs images" "$SHOAL" train table.net --data table.csv --augment flip
"$SHOAL" eval 1.safetensors --data bands --split train --json > eval.json || fail "eval of an augmented model"
"$SHOAL" predict 1.safetensors --data bands --split train --json > answers.json || fail "predict"
same "$(grep -c '"correct":true' answers.json)" \
  "$(python3 -c 'import json; r = json.load(open("eval.json")); print(round(r["accuracy"] * r["samples"]))')" \
  "who evaluates sees images as they are"
finish
