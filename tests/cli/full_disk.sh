#!/usr/bin/env bash
# A full disk costs no model: too little room is said at the start, saves that fail leave what is there, and at the
# end of a training, a search or an agent it waits for room. A library put before the C library's says that there
# is none below $FULL_UNDER while the file $FULL_FLAG is there, so that no disk has to be filled; with $FULL_UNSEEN only
# writing tells, with $FULL_PART only files with that in their name cannot be written, and with $FULL_ROOM all can, but
# so many bytes are said to be free.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/server.bash"
cat > full.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
static int is_full(const char *path, int folder) {
  const char *flag = getenv("FULL_FLAG"), *under = getenv("FULL_UNDER");
  if (!flag || !under || access(flag, F_OK) != 0) return 0;
  return strncmp(path, under, folder && strlen(path) < strlen(under) ? strlen(path) : strlen(under)) == 0;
}
static int fd_is_full(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0 || getenv("FULL_ROOM")) return 0;
  path[length] = 0;
  return (!getenv("FULL_PART") || strstr(path, getenv("FULL_PART"))) && is_full(path, 0);
}
ssize_t write(int fd, const void *bytes, size_t length) {
  if (fd_is_full(fd)) return errno = ENOSPC, -1;
  return ((ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(fd, bytes, length);
}
int fflush(FILE *file) {
  if (file && fd_is_full(fileno(file))) return errno = ENOSPC, EOF;
  return ((int (*)(FILE *))dlsym(RTLD_NEXT, "fflush"))(file);
}
/* After so many files have come to their place, or to this one, the disk is full. */
int rename(const char *from, const char *to) {
  static int count;
  char real[4096];
  const char *most = getenv("FULL_AFTER"), *flag = getenv("FULL_FLAG"), *under = getenv("FULL_UNDER");
  const char *counted = getenv("FULL_COUNTED");
  int status = ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
  if (status == 0 && most && realpath(to, real) && strncmp(real, under, strlen(under)) == 0 &&
      (!counted || strcmp(real, counted) == 0) && ++count == atoi(most))
    fclose(fopen(flag, "w"));
  return status;
}
int statvfs(const char *path, struct statvfs *out) {
  char real[4096];
  int status = ((int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs"))(path, out);
  if (status == 0 && !getenv("FULL_UNSEEN") && !getenv("FULL_PART") && realpath(path, real) && is_full(real, 1))
    out->f_bavail = getenv("FULL_ROOM") ? (unsigned long)atol(getenv("FULL_ROOM")) / out->f_frsize : 0;
  return status;
}
C
check "the library is built" "${CC:-cc}" -shared -fPIC -O1 -o full.so full.c -ldl
make_models
make_images images 512 64
make_table all.csv
mkdir disk
export FULL_FLAG=$folder/is-full FULL_UNDER=$folder/disk
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
out=disk/model.safetensors

# full LOG WORD...: runs the program behind the library, in the background.
full() {
  local log=$1
  shift
  rm -f "$log"
  LD_PRELOAD=$folder/full.so "$SHOAL" "$@" > "$log" 2>&1 &
  started=$!
  pids+=("$started")
}

quiet() { "$SHOAL" "$@" > /dev/null; }

# ---- at the start ----
touch is-full
full log train images.net --data images --out $out
wait "$started"
same $? 1 "no room at the start: $(cat log)"
check "it says how much is needed: $(cat log)" \
  grep -Eq "cannot save the model: $out: this needs [0-9.]+ [kM]?B, but only 0 B are free there; free some space or choose" log
rm is-full

# Room for two copies of the model, but not for what a cluster keeps beside them.
touch is-full
FULL_ROOM=80000 full log train images.net --data images --out $out
wait "$started"
same $? 0 "room for a model: $(tail -3 log)"
check "nothing is said: $(cat log)" bash -c '! grep -q "saving needs room" log'
rm -f disk/*
FULL_ROOM=80000 full log train images.net --data images --out $out --workers 1 --ps 1
wait "$started"
same $? 0 "little room for a cluster: $(tail -3 log)"
check "it says what all needs: $(cat log)" \
  grep -Eq "saving needs room for 2 copies of the model, [0-9.]+ kB each, and [0-9.]+ kB for disk/model.safetensors.state, but only [0-9.]+ kB" log
rm is-full

# ---- in the middle and at the end ----
# So short a time is over after every round: the disk is full after the second one, and the third one's save fails.
save="--save-every 0.000001"
"$SHOAL" train images.net --data images --epochs 60 --out good.safetensors --quiet
good=$("$SHOAL" inspect good.safetensors --json | grep -o '"weights_sha256":"[^"]*"')
for how in "" "--workers 1 --transport threads --state-dir $folder/state" "--workers 1 --ps 1"; do
  rm -f disk/*
  # shellcheck disable=SC2086
  FULL_AFTER=2 FULL_COUNTED=$folder/$out full log train images.net --data images --epochs 60 $save --out $out $how
  until_says "waiting until there is room" log
  check "a save in the middle is a note: $(cat log)" grep -q "the training continues and will try again" log
  check "what was saved stays" quiet inspect $out
  check "what would be left is said" grep -Eq "If you stop the training now, it ends with the model after [0-9,]+ rounds in $out" log
  rm is-full
  wait "$started"
  same $? 0 "it ends well once there is room ($how): $(tail -3 log)"
  same "$("$SHOAL" inspect $out --json | grep -o '"weights_sha256":"[^"]*"')" "$good" "the weights are the same"
done

# ---- stopped while it waits ----
rm -f disk/*
# shellcheck disable=SC2086
FULL_AFTER=2 full log train images.net --data images --epochs 60 $save --out $out
until_says "waiting until there is room" log
kill -INT "$started"
wait "$started"
same $? 130 "Ctrl-C ends the waiting: $(tail -2 log)"
check "it says what there is: $(tail -1 log)" grep -Eq "it ends with the model after [0-9,]+ rounds in $out" log
check "which is there" quiet inspect $out
rm is-full disk/*

# ---- only what a cluster keeps finds no room ----
epochs_told() { grep -c '"event":"epoch"' log; }
is_past() { [ "$(epochs_told)" -ge "$1" ]; }
# passes N: that many epochs more.
passes() { until_true "the training goes on" is_past $(($(epochs_told) + $1)); }
sha_of() { "$SHOAL" inspect "$1" --json | grep -o '"weights_sha256":"[^"]*"'; }
stop_it() {
  kill -INT "$started"
  wait "$started"
  same $? 130 "Ctrl-C $1: $(tail -3 log)"
}
cluster=(train images.net --data images --out "$folder/$out" --workers 1 --ps 1)

# To the end: the weights come from the parameter server's memory.
touch is-full
FULL_PART=.ps0. full log "${cluster[@]}" --epochs 60 --json
until_says '"event":"end"' log
wait "$started"
same $? 0 "it ends well: $(tail -3 log)"
same "$(sha_of $out)" "$good" "the weights are the same without records"
same "$(grep -c '^shoal train: ps 0 cannot keep round' log)" 1 "that they are not kept is said once"
same "$(grep -c '"event":"note","text":"ps 0 cannot keep round.*"role":"ps","index":0' log)" 1 "and to programs"

# Stopped: no epoch is lost.
rm -rf disk/*
FULL_PART=.ps0. full log "${cluster[@]}" --epochs 100000 --json
until_says "ps 0 cannot keep round" log
passes 3
done_before=$(epochs_told)
stop_it "without records"
"$SHOAL" inspect $out --json > inspect.json
epochs=$(field epoch inspect.json)
check "the last epoch is in $out: $epochs of $done_before" test "$epochs" -ge "$done_before"
"$SHOAL" train --resume $out --data images --epochs $((epochs + 1)) --out resumed.safetensors --quiet
"$SHOAL" train images.net --data images --epochs $((epochs + 1)) --out alone.safetensors --quiet
same "$(sha_of resumed.safetensors)" "$(sha_of alone.safetensors)" "what was saved has the bits of one machine"

# There is room again, and then a crash.
rm -rf disk/*
FULL_PART=.ps0. full log "${cluster[@]}" --epochs 100000 --json
until_says "ps 0 cannot keep round" log
passes 1
rm is-full
until_says "shoal train: there is room again: round" log
passes 1
kill -KILL "$started"
wait "$started" 2> /dev/null
all_gone "the cluster is gone"
full log "${cluster[@]}" --epochs 100000 --json
until_says "continuing from round" log
passes 1
stop_it "after a crash"

# The chief's record alone: what belongs to the one that is there stays.
rm -rf disk/*
FULL_PART=.chief. full log "${cluster[@]}" --epochs 100000 --json
passes 1
until_true "the parameter server has a record" bash -c "ls disk/model.safetensors.state/*.ps0.[0-9]* > ls"
touch is-full
until_says "the chief cannot keep round" log
passes 3
kill -KILL "$started"
wait "$started" 2> /dev/null
all_gone "the cluster is gone"
FULL_PART=.chief. full log "${cluster[@]}" --epochs 100000 --json
until_says "cannot keep the state of the training" log
rm is-full
until_says "there is room again: the training continues" log
until_says "continuing from round" log
check "nothing was lost that was kept: $(cat log)" bash -c '! grep -q "has lost what it kept" log'
stop_it "after a crash of a chief without room"

# Started by hand, each says it.
rm -rf disk/*
touch is-full
mapfile -t at < <(ports 2 | sed 's/^/127.0.0.1:/')
hand=(--worker-hosts "${at[0]}" --ps-hosts "${at[1]}" --threads 1)
FULL_PART=.ps0. full ps.log train --job-name ps --task-index 0 "${hand[@]}" --state-dir disk/ps
ps=$started
FULL_PART=.ps0. full log train images.net --data images --epochs 60 --out $out --job-name worker --task-index 0 "${hand[@]}" --state-dir disk/chief
wait "$started"
same $? 0 "the chief: $(tail -3 log)"
wait "$ps"
same $? 0 "the parameter server: $(tail -3 ps.log)"
same "$(sha_of $out)" "$good" "the weights are the same with roles by hand"
check "the chief says it: $(cat log)" grep -q "^shoal train: ps 0 cannot keep round .*; the training continues" log
check "so does the parameter server: $(cat ps.log)" grep -q "^ps 0: cannot keep round .*; trying again" ps.log
rm is-full

# ---- a search: its trials, then its model ----
for under in disk/best.search/trials disk/best.safetensors; do
  touch is-full
  rm -rf disk/*
  FULL_UNSEEN=1 FULL_UNDER=$folder/$under full log search all.csv --target y --trials 3 --epochs 2 --out disk/best.safetensors
  until_says "waiting until there is room" log
  check "there is no model yet" test ! -e disk/best.safetensors
  rm is-full
  wait "$started"
  same $? 0 "a search that waited for room for $under: $(tail -3 log)"
  check "its model is there" quiet inspect disk/best.safetensors
done

# What is for TensorBoard alone is no reason to end a search.
mkdir logs
touch is-full
FULL_UNDER=$folder/logs full log search all.csv --target y --trials 3 --epochs 2 --out disk/logged.safetensors --log-dir logs
wait "$started"
same $? 0 "no room for a search's log: $(cat log)"
same "$(grep -c "logs/.*No space left.*but the search continues" log)" 1 "it is said, once: $(cat log)"
rm is-full

# Stopped while they wait for room, each ends as one that is stopped elsewhere.
for under in disk/stopped.search/trials disk/stopped.safetensors; do
  touch is-full
  rm -rf disk/*
  FULL_UNSEEN=1 FULL_UNDER=$folder/$under full log search all.csv --target y --trials 3 --epochs 2 --out disk/stopped.safetensors
  until_says "waiting until there is room" log
  kill -INT "$started"
  wait "$started"
  same $? 130 "Ctrl-C while a search waits for room for $under: $(tail -3 log)"
  rm is-full
  "$SHOAL" search all.csv --resume --trials 3 --out disk/stopped.safetensors > log 2>&1
  same $? 0 "it goes on: $(tail -3 log)"
done

# ---- an agent ----
touch is-full
full log agent train --env CartPole-v1 --out disk/agent.safetensors
wait "$started"
same $? 1 "no room for an agent at the start: $(cat log)"
check "it says so" grep -q "disk/agent.safetensors: this needs .*, but only 0 B are free there" log
full log search all.csv --target y --trials 3 --epochs 2 --out disk/other.safetensors
wait "$started"
same $? 1 "no room for a search at the start: $(cat log)"
check "it says so" grep -q "this needs 4.* MB, but only 0 B are free there" log
FULL_UNSEEN=1 full log agent train --env CartPole-v1 --steps 4000 --out disk/agent.safetensors
until_says "waiting until there is room" log
rm is-full
wait "$started"
same $? 0 "an agent that waited for room: $(tail -3 log)"
check "it is there" quiet inspect disk/agent.safetensors
touch is-full
FULL_UNSEEN=1 full log agent train --env CartPole-v1 --steps 4000 --out disk/other-agent.safetensors
until_says "waiting until there is room" log
kill -INT "$started"
wait "$started"
same $? 130 "Ctrl-C while an agent waits for room: $(tail -3 log)"
check "it says why nothing is saved: $(tail -1 log)" grep -q "no space left" <(tail -1 log)
rm is-full
finish
