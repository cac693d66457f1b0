#!/usr/bin/env bash
# shoal agent: trains until solved, repeats exactly, stops and goes on, lists, and says what is wrong.
. "$(dirname "$0")/common.bash"

# train OUT WORD...: JSON in OUT.log.
train() {
  local out=$1
  shift
  "$SHOAL" agent train --json --out "$out.safetensors" "$@" > "$out.log" 2> "$out.err"
}
# weights OUT: what the policy is, whatever the time was.
weights() {
  python3 - "$1.safetensors" <<'PYTHON'
import hashlib, json, struct, sys
data = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + length])
places = [header[name]["data_offsets"] for name in sorted(header) if name.startswith("policy.") and name.count(".") == 2]
assert len(places) > 1, header.keys()
print(hashlib.sha256(b"".join(data[8 + length + start:8 + length + end] for start, end in places)).hexdigest())
PYTHON
}

# ---- solved ----
train one --env CartPole-v1 --algorithm ppo --threads 1 --log-dir logs
same $? 0 "training: $(cat one.err)"
check "curves for TensorBoard" grep -aq "return/scored" logs/events.out.tfevents.*
same "$(field solved one.log)" True "CartPole-v1 is solved"
check "by the goal" python3 -c "assert $(field return_mean one.log) >= 475"
check "the end says steps and seconds" python3 -c "assert $(field steps one.log) > 0 and $(field seconds one.log) > 0"
check "rounds are told" grep -q '"event":"round"' one.log
train two --env CartPole-v1 --algorithm ppo --threads 2
same "$(weights two)" "$(weights one)" "two threads train the same agent"
same "$(field steps two.log)" "$(field steps one.log)" "and end at the same step"
train other --env CartPole-v1 --algorithm ppo --seed 2
check "another seed, another agent" test "$(weights other)" != "$(weights one)"
"$SHOAL" inspect one.safetensors > inspect.out 2> inspect.err
same $? 0 "inspect: $(cat inspect.err)"
check "it names the environment" grep -Eq '^environment +CartPole-v1$' inspect.out
check "and the algorithm" grep -Eq '^algorithm +ppo: ' inspect.out
check "and the layers" grep -Eq '^layers +dense 64 tanh, dense 64 tanh$' inspect.out
check "and how far it is" grep -Eq '^steps +[0-9,]+ of 2,000,000, seed [0-9]+$' inspect.out
"$SHOAL" inspect one.safetensors --json > inspect.json
same "$(field env inspect.json) $(field algorithm inspect.json) $(field weights inspect.json) $(field whole inspect.json)" \
  "CartPole-v1 ppo 4610 True" "inspect --json"
same "$(field steps inspect.json)" "$(field steps one.log)" "its steps"
"$SHOAL" export one.safetensors --onnx one.onnx > export.out 2> export.err
same "$? $(cat export.out)" "0 one.onnx: ONNX, from 'observation' (batch x 4) to 'action' (a choice)" "export: $(cat export.err)"
train remembers --env CartPole-NoVelocity --steps 2048 --full
"$SHOAL" export remembers.safetensors --onnx remembers.onnx > export.out 2> export.err
same $? 1 "a memory is not exported"
check "and it says so: $(cat export.err)" grep -q "recurrent layer" export.err
train lagging --env CartPole-v1 --algorithm vtrace
same "$(field solved lagging.log)" True "vtrace solves it, too"

# ---- limits ----
some=(--env CartPole-v1 --algorithm ppo --full --set streams=2,envs=4,steps=32,epochs=2)
train short "${some[@]}" --steps 2048
same "$(field steps short.log)" 2048 "--steps"
train timed "${some[@]}" --seconds 1 --steps 1000000000
same $? 0 "--seconds: $(cat timed.err)"
check "and not --steps is what ended it" test "$(field steps timed.log)" -lt 1000000000

# ---- interrupted, and taken up again ----
train straight "${some[@]}" --steps 8192
train halves "${some[@]}" --steps 8192 --seconds 0.001
check "it was interrupted" python3 -c "assert $(field steps halves.log) < 8192"
train halves --resume --full
same $? 0 "going on: $(cat halves.err)"
same "$(field steps halves.log)" 8192 "to the end that was planned"
same "$(weights halves)" "$(weights straight)" "the same agent as undisturbed"
"$SHOAL" agent train "${some[@]}" --steps 1000000000 --json --out stopped.safetensors > stopped.log 2> stopped.err &
pid=$!
until_says '"event":"round"' stopped.log
kill -INT $pid
wait $pid
same $? 130 "Ctrl-C"
check "says so" grep -q "stopped by SIGINT" stopped.err
same "$(field event stopped.log) $(field stopped stopped.log) $(field return_mean stopped.log)" "end True None" "the last event is the end"
check "with its steps" test "$(field steps stopped.log)" -gt 0
check "what was learned is saved" "$SHOAL" agent train --resume --full --out stopped.safetensors --seconds 0.01

"$SHOAL" agent train --resume --full --out stopped.safetensors > people.log 2> people.err &
pid=$!
until_true "it has begun" catches $pid
kill -INT $pid
wait $pid
same $? 130 "Ctrl-C, for people"
check "where it is, and how to go on: $(cat people.err)" grep -Eq "^[0-9,]+ steps are saved in stopped.safetensors; to continue:$" people.err
next=$(tail -1 people.err)
check "the command is one: $next" grep -Fq "agent train --resume --out stopped.safetensors --full" <<< "$next"
check "which works" bash -c "$next --seconds 0.1 > next.log 2>&1"

# ---- at its end already ----
train short --resume --full
same $? 0 "nothing to do: $(cat short.err)"
check "which is said: $(cat short.err)" grep -q "no step was made: short.safetensors has all of its 2,048; give a larger --steps N" short.err
train short --resume --full --steps 4096 --algorithm ppo --env CartPole-v1
same "$? $(field steps short.log)" "0 4096" "more of it, with the words of the first time"

# ---- what was there before ----
cp short.safetensors kept.safetensors
"$SHOAL" agent train "${some[@]}" --steps 2048 --out short.safetensors > short.log 2> short.err
check "an earlier agent is kept: $(cat short.err)" cmp -s kept.safetensors short.previous.safetensors
check "and that is said" grep -q "the agent that was at short.safetensors is kept as short.previous.safetensors" short.err
check "the goal is a whole number: $(cat short.log)" grep -Eq "^not solved after 2,048 steps in .*: return [0-9.]+ \+- [0-9.]+ over 100 episodes \(goal 475\)$" short.log
"$SHOAL" agent train --resume --out short.safetensors --steps 4096 --full --quiet > short.log 2> short.err
same "$? $(cat short.log short.err)" "0 " "--quiet says nothing"
"$SHOAL" agent train --env CartPole-v1 --set rate=fast --out short.safetensors > /dev/null 2>&1
check "what is refused moves nothing" test -s short.safetensors
before=$(sha256sum < short.safetensors)
"$SHOAL" agent train "${some[@]}" --queue amqp://127.0.0.1:1/x --out short.safetensors > short.log 2> short.err
same "$? $(sha256sum < short.safetensors)" "1 $before" "what cannot begin leaves it where it is: $(cat short.err)"
check "under one name" test ! -e short.previous-2.safetensors
"$SHOAL" agent train "${some[@]}" --steps 2048 --out short.safetensors --quiet
check "and an earlier one of before, too" cmp -s kept.safetensors short.previous.safetensors
same "$(sha256sum < short.previous-2.safetensors)" "$before" "beside the next"
echo mine > thesis.txt
"$SHOAL" agent train "${some[@]}" --out thesis.txt > short.log 2> short.err
same "$? $(cat thesis.txt)" "2 mine" "what is no agent stays: $(cat short.err)"
check "why is said" grep -q "thesis.txt is there and is no agent" short.err
printf 'dense 100000000 tanh\n' > huge.net
"$SHOAL" agent train "${some[@]}" --model huge.net > short.log 2> short.err
same $? 2 "layers that are too large are refused: $(cat short.err)"
check "with how many weights" grep -q "the layers have [0-9,]* weights, and may have" short.err
"$SHOAL" agent train --env CartPole-v1 --full --json --out unread.safetensors 2> short.err | head -n 1 > short.log
same "${PIPESTATUS[0]}" 141 "where nobody reads any more it ends: $(cat short.err)"
check "and saves" test -s unread.safetensors

# ---- a body of one's own ----
printf '# who remembers\ngru 16\n' > body.net
train body --env CartPole-v1 --algorithm ppo --model body.net --steps 4096 --full
same $? 0 "a recurrent body: $(cat body.err)"
printf 'dense many\n' > bad.net
printf 'dense 64 tanh\noptimizer adam rate 0.1\n' > whole.net

# ---- the list ----
"$SHOAL" agent list > list.txt
same $? 0 "agent list"
check "environments" grep -q '^CartPole-v1 .* 475 ' list.txt
check "algorithms" grep -q '^ppo  ' list.txt
"$SHOAL" agent list --json > list.json
check "as JSON" python3 -c "
import json
all = json.load(open('list.json'))
cart = [e for e in all['environments'] if e['name'] == 'CartPole-v1'][0]
assert (cart['observation'], cart['choices'], cart['limit'], cart['goal']) == (4, 2, 500, 475), cart
assert {'ppo', 'vtrace'} <= {a['name'] for a in all['algorithms']}"

# ---- help ----
for command in "agent" "agent train" "agent list"; do
  "$SHOAL" $command --help > help.txt
  same $? 0 "shoal $command --help"
  check "shoal $command --help has examples" grep -q "^Examples:" help.txt
  same "$(COLUMNS=60 "$SHOAL" $command --help | sed '/^Examples/,$d; /^Usage/d; /^   or/d' | awk 'length > 60')" "" \
    "shoal $command --help keeps to 60 columns"
done
check "shoal lists agent" grep -q "^  agent " <("$SHOAL")

# ---- an actor whose broker is not there yet waits for it ----
"$SHOAL" agent act --queue "amqp://127.0.0.1:$(ports 1)" > act.log 2> act.err &
pid=$!
until [ -s act.err ] || ! kill -0 $pid 2> /dev/null; do sleep 0.02; done
if grep -q "built without" act.err; then
  wait $pid
else
  check "it says so: $(cat act.err)" grep -q "waiting for it" act.err
  sleep 1
  check "and goes on waiting" kill -0 $pid
  same "$(wc -l < act.err)" 1 "without saying it again"
  kill -INT $pid
  wait $pid
  same $? 0 "Ctrl-C ends an actor: $(cat act.err)"
  check "which tells what it did" grep -q "played 0 units" act.log
fi

# ---- what is wrong ----
# wrong STATUS WORDS ARGUMENT...
wrong() {
  local status=$1 words=$2
  shift 2
  "$SHOAL" "$@" > wrong.log 2>&1
  same $? "$status" "$*: $(cat wrong.log)"
  check "$*: $(cat wrong.log)" grep -qF -- "$words" wrong.log
}
wrong 2 "'trian' is not one of train, act, play and list; did you mean 'train'?" agent trian
wrong 2 "did you mean 'train'?" agent trai --env CartPole-v1
wrong 2 "did you mean --env CartPole-v1?" agent train CartPole-v1
wrong 2 "where to act is said by --env NAME" agent train poles
wrong 2 "did you mean --resume --out one.safetensors?" agent train --resume one.safetensors
wrong 2 "--env is missing" agent train
wrong 2 "--queue is missing" agent act
wrong 2 "--name is for --queue" agent train --env CartPole-v1 --name poles
wrong 1 "letters, digits" agent act --queue amqp://127.0.0.1:1 --name 'a b'
wrong 2 "CartPole-v1" agent train --env CartPole
wrong 2 "--algorithm" agent train --env CartPole-v1 --algorithm magic
wrong 2 "dqn" agent train --env Pendulum-v1 --algorithm dqn
wrong 2 "did you mean 'rate'" agent train --env CartPole-v1 --set rat=1
wrong 2 "not name=value" agent train --env CartPole-v1 --set rate
wrong 2 "0 is not within 1 to 1,000" agent train --env CartPole-v1 --set epochs=0
wrong 2 "more than lag_max" agent train --env CartPole-v1 --set lag=7,lag_max=1
wrong 2 "rate is given twice" agent train --env CartPole-v1 --set rate=0.1,clip=1,rate=0.2
wrong 2 "memory: is a setting of dqn and sac, and does nothing with ppo" agent train --env CartPole-v1 --set memory=10
wrong 2 "did you mean 'minibatch'?" agent train --env CartPole-v1 --set batch=5
wrong 2 "does nothing with dqn" agent train --env CartPole-v1 --algorithm dqn --set epochs=3
wrong 2 "agent train: bad.net:1:7: dense: expected" agent train --env CartPole-v1 --model bad.net
wrong 2 "whole.net:2:1: 'optimizer' is no layer" agent train --env CartPole-v1 --model whole.net
wrong 2 "agent train: body:2:2: unknown layer 'dens'" agent train --env CartPole-v1 --set 'body=dense 8; dens 4'
wrong 2 "the body is in body.net already" agent train --env CartPole-v1 --model body.net --set 'body=dense 8'
wrong 2 "use ppo or vtrace" agent train --env Pendulum-v1 --set 'body=gru 8'
wrong 1 "no such file" agent train --env CartPole-v1 --model none.net
wrong 1 "no training to continue" agent train --resume --out none.safetensors
wrong 2 "--out is missing" agent train --resume
wrong 2 "--seed cannot be changed" agent train --resume --out one.safetensors --seed 7
wrong 2 "--algorithm cannot be changed" agent train --resume --out one.safetensors --algorithm dqn
wrong 2 "--steps is how many in all: give more" agent train --resume --out one.safetensors --steps 1000
wrong 2 "is a training in CartPole-v1" agent train --resume --out one.safetensors --env Acrobot-v1
head -c 2000 one.safetensors > cut.safetensors
wrong 1 "cut.safetensors" agent train --resume --out cut.safetensors
wrong 1 "agent train: --out: none/of/this" agent train --env CartPole-v1 --steps 100 --out none/of/this.safetensors
wrong 1 "one.safetensors is an agent" eval one.safetensors --data toy:moons
wrong 1 "'shoal agent play one.safetensors' shows it" predict one.safetensors --data toy:moons
wrong 2 "shoal agent train --resume --out one.safetensors" train --resume one.safetensors --data toy:moons
finish
