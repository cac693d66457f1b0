#!/usr/bin/env bash
# An agent on a server from the command line: submitted, played for by volunteers, watched, shown, stopped, extended, brought
# back and played; and what does not fit is said before anything is begun.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/server.bash"
mapfile -t port < <(ports 1)
link="http://127.0.0.1:${port[0]}/#for=tests"
start serve.log serve --listen "127.0.0.1:${port[0]}" --data-dir server
serve=$started
until_says "Serving at" serve.log

# weights FILE: what the policy is, whatever else the file has.
weights() {
  python3 - "$1" <<'PYTHON'
import hashlib, json, struct, sys
data = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + length])
places = [header[name]["data_offsets"] for name in sorted(header) if name.startswith("policy.") and name.count(".") == 2]
assert len(places) > 1, header.keys()
print(hashlib.sha256(b"".join(data[8 + length + start:8 + length + end] for start, end in places)).hexdigest())
PYTHON
}
# host WORD...: what it says in host.log.
host() { patiently "$SHOAL" host --server "$link" "$@" > host.log 2>&1; }

# ---- what is wrong ----
printf 'dense many\n' > bad.net
refused 2 "MODEL.net or TABLE.csv is missing (or, of an agent, --env NAME)" host --server "$link"
refused 2 "did you mean 'CartPole-v1'" host --env CartPoll-v1 --server "$link"
refused 2 "played by Python" host --env gym:CartPole-v1 --server "$link"
refused 2 "--algorithm" host --env Pendulum-v1 --algorithm dqn --server "$link"
refused 2 "--algorithm" host --env CartPole-v1 --algorithm magic --server "$link"
refused 2 "--set: " host --env CartPole-v1 --set speed=3 --server "$link"
refused 2 "--set: " host --env CartPole-v1 --set rate=fast --server "$link"
refused 2 "'rate' is not name=value" host --env CartPole-v1 --set rate --server "$link"
refused 2 "shoal host: bad.net:1:7: dense: " host --env CartPole-v1 --model bad.net --server "$link"
refused 2 "body:1:7: dense: " host --env CartPole-v1 --set 'body=dense many' --server "$link"
refused 2 "memory: is a setting of dqn and sac" host --env CartPole-v1 --set memory=10 --server "$link"
refused 2 "--rate is not for an agent" host --env CartPole-v1 --rate 0.1 --server "$link"
refused 2 "--data is not for an agent" host --env CartPole-v1 --data mnist --server "$link"
refused 2 "--trials is not for an agent" host --env CartPole-v1 --trials 3 --server "$link"
refused 2 "needs no 'bad.net'" host bad.net --env CartPole-v1 --server "$link"
refused 2 "--seconds is for an agent" host bad.net --data toy:moons --seconds 3 --server "$link"
refused 2 "with --detach no model comes back" host --env CartPole-v1 --detach --out x.safetensors --server "$link"
refused 2 "--steps is for 'shoal job resume'" job stop 1 --steps 10 --server "$link"
same "$("$SHOAL" status --server "$link" --json | grep -o '"jobs":\[[^]]*\]')" '"jobs":[]' "nothing of it came to the server"

# ---- solved, brought back, and played ----
volunteer one.log "$link" --name one --cores 1 --json
one=$started
host --env CartPole-v1 --seconds 100
same $? 0 "an agent: $(cat host.log)"
check "scores are told: $(cat host.log)" grep -Eq "^score [0-9.]+ \+- [0-9.]+ after [0-9,]+ steps: solved" host.log
check "and the end" grep -Eq "^job 1 is finished, after .*; solved after [0-9,]+ steps: return [0-9.]+ \+- [0-9.]+ \(goal 475\)" host.log
check "and each of these once: $(cat host.log)" test "$(grep -c "solved" host.log)" -eq 2
check "the agent plays" "$SHOAL" agent play CartPole-v1.safetensors --episodes 1 --gif film.gif > /dev/null
check "its film is there" test -s film.gif
"$SHOAL" status --server "$link" > status.log
check "in the list: $(cat status.log)" grep -Eq "  1  CartPole-v1 .*finished .* 100% +[0-9,]{4,} .* [0-9.]+, solved$" status.log
"$SHOAL" status --job 1 --server "$link" > status.log
check "what it is: $(cat status.log)" grep -q "^an agent: CartPole-v1 by ppo$" status.log
check "how good it is" grep -Eq "^last score .*\(goal 475.*: solved$" status.log
check "who played" grep -Eq "^one +(no|yes) +[0-9]+ +[0-9,]{4,} +100%" status.log
check "the volunteer counts steps" grep -Eq '"units":[1-9][0-9]*,"samples":[1-9][0-9]{3,}' one.log
check "and has fetched nothing" bash -c '! grep -q "\"state\":\"fetching\"" one.log'

# ---- in exact rounds, the agent of one machine; with more than one volunteer ----
volunteer two.log "$link" --name one --cores 2
some=(--env CartPole-v1 --algorithm ppo --full --seed 5 --steps 8192 --set streams=4,envs=4,steps=32,epochs=2)
printf 'dense 24 tanh\n' > body.net
host "${some[@]}" --model body.net --exact --name exact
same $? 0 "exact rounds: $(cat host.log)"
check "all steps were used" grep -q "after 8,192 steps" host.log
"$SHOAL" agent train "${some[@]}" --model body.net --out here.safetensors > here.log 2>&1
same "$(weights exact.safetensors)" "$(weights here.safetensors)" "volunteers train the agent that one machine trains"

# ---- events ----
host --env CartPole-v1 --algorithm vtrace --seconds 60 --out v.safetensors --json
same $? 0 "as JSON: $(tail -1 host.log)"
check "points are events, and each a line of JSON" python3 - <<'PYTHON'
import json
events = [json.loads(line) for line in open("host.log")]
points = [e["data"] for e in events if e["event"] == "point"]
assert points and all({"steps", "seconds", "return_mean", "lag"} <= set(p) for p in points), points
assert len({p["steps"] for p in points}) == len(points), "a point twice"
end = [e["data"] for e in events if e["event"] == "end"][0]
assert end["kind"] == "agent" and end["agent"]["solved"] and end["spec"]["algorithm"] == "vtrace", end
assert events[-1] == {"event": "model", "data": {"file": "v.safetensors"}}, events[-1]
PYTHON

# ---- more of it ----
refused 1 "--seconds S, or --steps N" job resume 2 --server "$link"
"$SHOAL" job resume 2 --steps 12288 --server "$link" > resume.log
same $? 0 "resume: $(cat resume.log)"
patiently "$SHOAL" job watch 2 --server "$link" --out more.safetensors > watch.log
same $? 0 "watch: $(cat watch.log)"
check "to as many steps as it was told: $(cat watch.log)" grep -q "after 12,288 steps" watch.log

# ---- one volunteer leaves, the host stops it, and gets what there is ----
host --env CartPole-v1 --full --steps 1000000000 --name long --detach
same $? 0 "without waiting: $(cat host.log)"
check "how to go on is told" grep -q "shoal job watch 4" host.log
# more_than N: steps of job 4.
steps() { "$SHOAL" status --job 4 --server "$link" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["job"]["agent"]["steps"])'; }
more_than() { [ "$(steps)" -gt "$1" ]; }
kill -INT "$one"
wait "$one"
same $? 0 "a volunteer leaves in order: $(tail -2 one.log)"
until_true "the other one plays on" more_than "$(steps)"

# ---- the server is killed, and the volunteer waits for it ----
start watch.log job watch 4 --server "$link"
watch=$started
until_says "job 4 is running" watch.log
kill -9 "$serve"
until_says "lost the server" watch.log
start again.log serve --listen "127.0.0.1:${port[0]}" --data-dir server
until_says "Serving at" again.log
until_true "it goes on" more_than 0
until_true "and is played for" more_than "$(steps)"
"$SHOAL" job stop 4 --server "$link" > stop.log
until_true "it stops" bash -c "'$SHOAL' status --job 4 --server '$link' | grep -q ': stopped'"
wait "$watch"
same $? 1 "who watched is told: $(tail -4 watch.log)"
check "and how to go on" grep -q "shoal job resume 4" watch.log
check "what there is: $(cat stop.log)" "$SHOAL" job get 4 --server "$link" --quiet
check "plays" "$SHOAL" agent play long.safetensors --episodes 1 --gif film.gif > /dev/null
"$SHOAL" job resume 4 --seconds 1 --server "$link" > resume.log
same $? 0 "on for a second: $(cat resume.log)"
patiently "$SHOAL" job watch 4 --server "$link" --out long.safetensors > watch.log 2>&1
same $? 0 "which ends: $(cat watch.log)"
finish
