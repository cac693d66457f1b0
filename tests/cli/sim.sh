#!/usr/bin/env bash
# The simulator as a command: what it prints, that a seed is a life, and how it says no.
. "$(dirname "$0")/common.bash"

# refused STATUS TEXT WORD...: the command ends so, and says that.
refused() {
  local status=$1 text=$2
  shift 2
  patiently "$SHOAL" "$@" > out 2> err < /dev/null
  same $? "$status" "the exit status of: $*"
  check "$*: '$(cat err)' tells '$text'" grep -Fq -- "$text" err
}

"$SHOAL" sim --seeds 100 > out 2> err
same $? 0 "shoal sim --seeds 100"
same "$(grep -v " seeds/s " err)" "" "it says nothing but its progress on standard error"
check "how many lives there were" grep -q "^100 lives in " out
check "faults are counted" grep -Eq "^  processes killed +[1-9][0-9,]*$" out
for rule in samples leases versions bits staleness differs durable deadlock memory; do
  check "rule '$rule' is not broken" grep -Eq "^  $rule +0$" out
done

"$SHOAL" sim --seed 7 --verbose > one
same $? 0 "shoal sim --seed 7 --verbose"
check "the log tells what happened" grep -q "chief *back to version 0, generation 1: the chief started" one
check "and how it ended" grep -q "the training is over" one
"$SHOAL" sim --seed 7 --verbose > again
same "$(sed '/lives in/d' again)" "$(sed '/lives in/d' one)" "the same seed is the same life"
check "--trace tells of messages" grep -q "PUSH from worker-" <("$SHOAL" sim --seed 7 --trace)

"$SHOAL" sim --seeds 20 --threads 1 --json > one.json
"$SHOAL" sim --seeds 20 --threads 2 --json > two.json
same "$(sed 's/"seconds":[^,]*//' one.json)" "$(sed 's/"seconds":[^,]*//' two.json)" "any number of threads"
check "the JSON has what it should" python3 - <<'PYTHON'
import json
r = json.load(open("one.json"))
assert r["lives"] == 20 and r["violations"] == 0 and r["broken"] == [], r
assert r["messages"] > 1000 and r["virtual_seconds"] > 10 and "connections_cut" in r["faults"], r
PYTHON

"$SHOAL" sim --seed 1 --workers 400 --mode sync > many
same $? 0 "four hundred workers"
check "they were there" grep -q "^sync, .* 400 workers" many

"$SHOAL" sim --mode sideways > out 2> err
same $? 2 "an unknown mode"
check "it says which there are" grep -q "sync, async, stale:N" err
"$SHOAL" sim --seeds 10 --verbose > out 2> err
same $? 2 "--verbose of many lives"

"$SHOAL" sim --swarms 60 --threads 2 > out 2> err
same $? 0 "shoal sim --swarms 60"
for rule in complete pure slots memory upload; do
  check "rule '$rule' is not broken" grep -Eq "^  $rule +0$" out
done
"$SHOAL" sim --swarm 8 --bytes 100000000 --json > swarm.json
same $? 0 "a swarm of eight"
"$SHOAL" sim --swarm 8 --bytes 100000000 --baseline tree --json > tree.json
check "it is faster than the tree" python3 - <<'PYTHON'
import json
swarm, tree = json.load(open("swarm.json")), json.load(open("tree.json"))
assert swarm["finished"] == tree["finished"] == 8, swarm
assert swarm["ratio"] < 1.3 and swarm["server_copies"] < 1.1 and 3.9 < tree["ratio"] < 4.1, (swarm, tree)
PYTHON
"$SHOAL" sim --swarm 8 --swarms 8 > out 2> err
same $? 2 "--swarm and --swarms"
refused 2 "--workers is for trainings" sim --swarm 8 --workers 3
refused 2 "--seeds is for trainings" sim --swarms 8 --seeds 3
refused 2 "--rate is for --swarm alone" sim --rate 5e6
check "one swarm is one" bash -c '"$SHOAL" sim --swarms 1 | grep -q "in 1 swarm\."'
finish
