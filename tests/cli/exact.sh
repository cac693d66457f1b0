#!/usr/bin/env bash
# The same weights to the last bit: on any number of threads, with any kernels, and after
# being stopped or killed and taken up again, any number of times.
. "$(dirname "$0")/common.bash"
make_images images 1024 128
make_text text.txt
make_models

# hash_of FILE: of the weights in a checkpoint.
hash_of() { "$SHOAL" inspect "$1" --json > inspect.json && field weights_sha256 inspect.json; }

# go NAME OPTION...: trains quietly into NAME.safetensors.
go() {
  local name=$1
  shift
  "$SHOAL" train "$@" --out "$name.safetensors" --quiet || fail "train $*"
}

# interrupt SIGNAL OPTION...: starts a training, sends the signal when it is in the middle, and leaves the exit status
# in $status.
interrupt() {
  local signal=$1
  shift
  held events.json "$SHOAL" train "$@" --json 2> err
  kill -"$signal" $process
  let_go
  wait $process 2> /dev/null
  status=$?
}

# The reference, then the same on other threads and kernels.
go one images.net --data images --threads 1
one=$(hash_of one.safetensors)
for threads in 2 3; do
  go many images.net --data images --threads $threads
  same "$(hash_of many.safetensors)" "$one" "$threads threads"
done
for kernels in baseline avx2 avx512 neon; do
  SHOAL_KERNELS=$kernels "$SHOAL" inspect images.net > /dev/null 2>&1 || continue
  SHOAL_KERNELS=$kernels go kernels images.net --data images
  same "$(hash_of kernels.safetensors)" "$one" "the kernels $kernels"
done
go other images.net --data images --seed 2
check "another seed gives other weights" test "$(hash_of other.safetensors)" != "$one"

# A new training in the place of an old model keeps the old one.
go kept images.net --data images
go kept images.net --data images --seed 2
same "$(hash_of kept.previous.safetensors)" "$one" "the model of an earlier training is kept"
check "a run that goes on moves nothing" test ! -e late.previous.safetensors

# More epochs later are the same as more epochs at once.
go late images.net --data images --epochs 1
"$SHOAL" train --resume late.safetensors --data images --epochs 3 --quiet
same "$(hash_of late.safetensors)" "$one" "one epoch, then two more"
"$SHOAL" train images.net --resume late.safetensors --data images --quiet
same "$(hash_of late.safetensors)" "$one" "nothing is left to do"

# Stopped by a signal: 60 epochs are long enough to be hit in the middle.
long=(--data images --epochs 60)
go long images.net "${long[@]}"
long_hash=$(hash_of long.safetensors)
interrupt INT images.net "${long[@]}" --out int.safetensors
same "$status" 130 "the exit status after SIGINT"
check "the last event tells how to go on" grep -q '"resume":"[^"]*shoal train --resume int.safetensors' events.json
same "$(hash_of int.safetensors)" "$(field weights_sha256 events.json)" "what was saved is what was told"
eval "$(field resume events.json | sed "s|^shoal|\"$SHOAL\"|") --quiet"
same "$(hash_of int.safetensors)" "$long_hash" "stopped by SIGINT and resumed with the command it told"
interrupt TERM images.net "${long[@]}" --out term.safetensors
same "$status" 143 "the exit status after SIGTERM"
"$SHOAL" train --resume term.safetensors --data images --quiet --threads 1
same "$(hash_of term.safetensors)" "$long_hash" "stopped by SIGTERM and resumed on one thread"

# Killed again and again, with a checkpoint every 10 ms.
interrupt KILL images.net "${long[@]}" --out kill.safetensors --save-every 0.01
same "$status" 137 "the exit status after SIGKILL"
for i in 1 2 3 4 5; do
  timeout -s KILL 0.$((i * 2)) "$SHOAL" train --resume kill.safetensors --data images --quiet --threads 3 \
    --save-every 0.01
done 2> /dev/null
"$SHOAL" train --resume kill.safetensors --data images --quiet
same "$(hash_of kill.safetensors)" "$long_hash" "killed up to six times"

# A text, with recurrent state that goes on from round to round.
text=(--data chars:text.txt --epochs 40)
go text chars.net "${text[@]}"
text_hash=$(hash_of text.safetensors)
go threads chars.net "${text[@]}" --threads 3
same "$(hash_of threads.safetensors)" "$text_hash" "a text on 3 threads"
interrupt INT chars.net "${text[@]}" --out stopped.safetensors
same "$status" 130 "the exit status of a text after SIGINT"
"$SHOAL" train --resume stopped.safetensors --data chars:text.txt --quiet
same "$(hash_of stopped.safetensors)" "$text_hash" "a text, stopped and resumed"

# Early stopping remembers its best epoch.
early=(--data images --valid 0.2 --early-stop 4 --epochs 200)
go early images.net "${early[@]}"
interrupt KILL images.net "${early[@]}" --out early2.safetensors
"$SHOAL" train --resume early2.safetensors --data images --valid 0.2 --quiet
same "$(hash_of early2.safetensors)" "$(hash_of early.safetensors)" "early stopping, killed and resumed"
check "the file of the best epoch is gone" test ! -e early.best.safetensors

# Without early stopping a file of that name is somebody else's: it stays, and is no best epoch.
cp early.safetensors mine.best.safetensors
go mine images.net --data images --valid 0.2 --epochs 1
check "a model called NAME.best stays" cmp -s early.safetensors mine.best.safetensors
cp mine.safetensors yours.safetensors
stopping=(--data images --valid 0.2 --early-stop 9 --epochs 2 --quiet)
"$SHOAL" train --resume mine.safetensors "${stopping[@]}"
"$SHOAL" train --resume yours.safetensors "${stopping[@]}"
same "$(hash_of mine.safetensors)" "$(hash_of yours.safetensors)" "early stopping from now on"

# What comes through a pipe is read once, and whole.
make_table table.csv
go file table.net --data table.csv
go pipe table.net --data <(cat table.csv)
same "$(hash_of pipe.safetensors)" "$(hash_of file.safetensors)" "a table through a pipe"
finish
