#!/usr/bin/env bash
# Training by the ranks of MPI: the same weights to the last bit for any number of them, also when
# stopped and taken up again; one report; errors said once, by whom they concern.
. "$(dirname "$0")/common.bash"

if [ ! -e "$(dirname "$SHOAL")/shoal-mpi.so" ]; then
  check "a program without MPI says what to install" \
    grep -q "install the Debian packages openmpi-bin and libopenmpi-dev" \
    <("$SHOAL" train "$SOURCE_DIR/examples/lenet5.net" --data fashion-mnist --transport mpi 2>&1)
  finish
fi
if ! command -v mpirun > /dev/null; then
  echo "skipped: there is no mpirun; install openmpi-bin"
  exit 0
fi

make_images images 640 64
make_images many 8192 64
make_text text.txt
make_table table.csv
make_models
cp images.net odd.net
printf 'clip 0.5\nshards 5\n' >> odd.net

# More ranks than processors, as root, within this machine. Sanitizers find fault with MPI itself.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none
export ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=report_bugs=0

# train_ranks N OPTION...
train_ranks() {
  local ranks=$1
  shift
  patiently mpirun -n "$ranks" "$SHOAL" train "$@" --transport mpi --threads 1
}

# hash_of FILE: of the weights in a checkpoint; state_of FILE: of slots and recurrent state.
hash_of() { "$SHOAL" inspect "$1" --json > inspect.json && field weights_sha256 inspect.json; }
state_of() { grep -ao '"shoal.state_sha256":"[0-9a-f]*"' "$1"; }

# gone PROCESS...: whether they have ended; those that only wait to be reaped have.
gone() { [ -z "$(ps -o stat= -p "$(tr ' ' , <<< "$*")" | grep -v Z)" ]; }

# The same bits.
while read -r net data; do
  "$SHOAL" train $net.net --data $data --out alone.safetensors --quiet || fail "train $net.net"
  for ranks in 1 2 3 4; do
    train_ranks $ranks $net.net --data $data --out ranks.safetensors --quiet > out 2>&1 ||
      fail "train $net.net on $ranks ranks: $(cat out)"
    same "$(hash_of ranks.safetensors)" "$(hash_of alone.safetensors)" "$net.net on $ranks ranks"
    same "$(state_of ranks.safetensors)" "$(state_of alone.safetensors)" "state of $net.net on $ranks ranks"
    same "$(cat out)" "" "what $ranks quiet ranks print"
  done
done <<'CASES'
images images
odd images
chars chars:text.txt
CASES

# Only rank 0 reports and writes.
mkdir one && cd one || exit 1
train_ranks 3 ../images.net --data ../images --json --log-dir logs > events.json
same "$(grep -c '"event":"start"' events.json)" 1 "one rank reports"
same "$(ls)" "$(printf 'events.json\nimages.safetensors\nlogs')" "what a training leaves"
same "$(find logs -type f | wc -l)" 1 "one event file"
cd ..

# Stopped by a signal to mpirun, which after a second tells all ranks to end: rank 0 saves, and any number
# of ranks goes on. mpirun takes no output in that second, so a rank that prints more than a few kilobytes
# in it would wait: small batches make for long epochs.
for signal in INT TERM; do
  rm -f events.json err
  mpirun -n 3 "$SHOAL" train images.net --data many --batch 4 --epochs 1000000 --transport mpi --threads 1 \
    --out stopped.safetensors --json > events.json 2> err &
  process=$!
  until grep -q '"event":"epoch"' events.json; do
    kill -0 $process 2> /dev/null || break
    sleep 0.01
  done
  kill -$signal $process 2> /dev/null
  wait $process
  check "a run of MPI that is stopped does not succeed" test $? -ne 0
  check "it was stopped: $(cat err)" grep -q '"event":"interrupted"' events.json
  same "$(hash_of stopped.safetensors)" "$(field weights_sha256 events.json)" "what SIG$signal saved is what was told"
  epochs=$(($(field epoch events.json) + 2))
  "$SHOAL" train images.net --data many --batch 4 --epochs $epochs --out alone.safetensors --quiet
  train_ranks 2 --resume stopped.safetensors --data many --epochs $epochs --quiet
  same "$(hash_of stopped.safetensors)" "$(hash_of alone.safetensors)" "stopped by SIG$signal and resumed on 2 ranks"
done

# A rank that dies takes the others with it, and a checkpoint is left to go on from.
for victim in 0 1; do
  rm -f killed.safetensors events.json err
  mpirun -n 2 "$SHOAL" train images.net --data images --epochs 100000 --transport mpi --threads 1 \
    --out killed.safetensors --save-every 0.05 --json > events.json 2> err &
  process=$!
  until [ -s killed.safetensors ]; do
    kill -0 $process 2> /dev/null || break
    sleep 0.01
  done
  ranks=$(pgrep -P $process)
  for rank in $ranks; do
    grep -qz "^OMPI_COMM_WORLD_RANK=$victim$" /proc/$rank/environ && kill -KILL $rank
  done
  wait $process 2> /dev/null
  check "a run of which rank $victim was killed fails" test $? -ne 0
  until_true "no rank is left when rank $victim was killed" gone $ranks
  check "rank $victim was killed and the checkpoint is whole" test -n "$(hash_of killed.safetensors)"
done

# Errors: once, from rank 0 when all have them, with the number of the rank when one has.
status=0
train_ranks 3 missing.net --data images > out 2>&1 || status=$?
check "a missing file fails" test $status -ne 0
same "$(grep -c "missing.net" out)" 1 "an error of all ranks is printed once"
cat > other.sh <<SCRIPT
cd "\$( [ "\$OMPI_COMM_WORLD_RANK" = 1 ] && echo elsewhere || echo . )"
exec "$SHOAL" train images.net --data "$PWD/images" --transport mpi --threads 1 --quiet --out other.safetensors
SCRIPT
mkdir elsewhere
patiently mpirun -n 3 bash other.sh > out 2>&1
check "a file that one rank misses is told with its number" grep -q "shoal train: rank 1: images.net" out
sed 's/dense 16/dense 17/' images.net > elsewhere/images.net
patiently mpirun -n 3 bash other.sh > out 2>&1
check "another model at one rank is refused" grep -q "rank 1 has another model" out
train_ranks 3 table.net --data table.csv --optimizer "sgd rate 1e9" --out bad.safetensors > out 2>&1
same "$(grep -c "the loss is not a number in epoch" out)" 1 "a loss that is not a number ends all ranks"
# Who takes part, and whether mpirun was forgotten.
train_ranks 2 images.net --data images --epochs 1 --out who.safetensors --json > events.json
check "the ranks are told" grep -q '"together":"2 ranks of MPI"' events.json
check "nothing was forgotten" test "$(grep -c 'this process is alone' events.json)" = 0
"$SHOAL" train images.net --data images --epochs 1 --out who.safetensors --json --transport mpi > events.json
check "without mpirun there is one" grep -q '"together":"1 rank of MPI"' events.json
check "which is said" grep -q '"event":"note","text":"this process is alone: mpirun -n N' events.json
train_ranks 3 images.net --data images --epochs 1 --shards 2 --out who.safetensors --json > events.json
check "ranks that have nothing to do are told" grep -q '"text":"3 ranks, but a round has 2 shards' events.json

finish
