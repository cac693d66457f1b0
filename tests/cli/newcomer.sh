#!/usr/bin/env bash
# What somebody who is new here runs into: files that must not be lost, exit statuses that a script can go by, and
# words of the command line where something is wrong.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/server.bash"
make_models
make_images images 300 30
make_table all.csv
mapfile -t port < <(ports 2)
link="http://127.0.0.1:${port[0]}"

host() { patiently "$SHOAL" host "$@" --server "$link"; }

# ---- what needs no server ----
refused 2 "what to do is missing: watch, stop, resume, get or delete" job
refused 2 "the number of a job is missing: shoal job stop ID" job stop
refused 2 "the link lacks '#'" work "$link/t=secret" --yes
refused 2 "the link lacks '#'" status --server "$link/t=secret"
check "the token is not repeated" bash -c '! grep -q secret err'
refused 2 "without a terminal, nobody can be asked whether to lend this machine; --yes" work "$link"
refused 2 "with --json, nobody can be asked" work "$link" --json
refused 2 "with --quiet, nobody can be asked" work "$link" --quiet

start serve.log serve --listen "127.0.0.1:${port[0]}" --data-dir server
until_says "Serving at" serve.log
refused 1 "its link begins with http://" status --server "https://127.0.0.1:${port[0]}"
start tls.log serve --listen "127.0.0.1:${port[1]}" --data-dir tls --tls --open host
until_says "Serving at" tls.log
refused 1 "its link begins with https://" status --server "http://127.0.0.1:${port[1]}"
refused 1 "fingerprint (fp), which in a shell must be in quotes" status --server "https://127.0.0.1:${port[1]}/#t=abc"
refused 1 "there is no job 99" work "$link" --job 99 --yes

# ---- nothing is sent that must fail ----
refused 1 "host: --out: /nope/x" host images.net --data images --out /nope/x --server "$link"
refused 2 "is a folder" host images.net --data images --out images --server "$link"
refused 2 "--mode" host images.net --data ./images --mode foo --server "$link"
refused 2 "--epochs: expected" host images.net --data ./images --epochs 0 --server "$link"
refused 2 "--rate: expected" host images.net --data ./images --rate fast --server "$link"
refused 2 "--rule" host images.net --data ./images --rule best --server "$link"
refused 2 "--early-stop" host images.net --data ./images --early-stop x --server "$link"
: > empty.csv
refused 1 "empty.csv is empty" host table.net --data empty.csv --server "$link"
refused 2 "--data-name: 'toy:spirals' is a data set of the server" \
  host table.net --data toy:spirals --data-name foo --server "$link"
head -100 all.csv > mine.csv
{ head -1 all.csv; echo "1,2,3,4"; } > yours.csv
refused 1 "yours.csv" host table.net --data mine.csv,yours.csv --server "$link"
check "the name that it was sent under is not told" bash -c '! grep -q test.csv err'
same "$("$SHOAL" status --server "$link" --json | grep -o '"jobs":\[\]')" '"jobs":[]' "no job was made of it"

# ---- a folder of .gz files, twice ----
cp -r images packed
gzip packed/*
volunteer work.log "$link" --name one --cores 900
until_says "--cores 900: this machine has" work.log
host images.net --data ./packed --name iris > host.log 2>&1
same $? 0 "a folder of .gz files: $(cat host.log)"
host images.net --data ./packed --name iris --detach > again.log 2>&1
same $? 0 "and once more: $(cat again.log)"
check "it is not sent again" bash -c '! grep -q sending again.log'
check "all lines of a watch have the same words" \
  test "$(grep -c '^epoch' host.log)" = "$(grep -Ec '^epoch [0-9]/3  train loss .* accuracy .* test loss .* accuracy' host.log)"
make_images other/packed 290 30
gzip other/packed/*
refused 1 "another data set that is called 'packed'" host images.net --data other/packed --server "$link" --detach
refused 2 "is too long; it takes at most 32 bytes" work "$link" --name "$(printf '%33s' | tr ' ' n)" --yes

# ---- job get, again and again ----
echo mine > iris.previous.safetensors
cp iris.safetensors model.safetensors
for _ in 1 2; do "$SHOAL" job get 1 --server "$link" > get.log; done
check "the same model moves nothing" test ! -e iris.previous-2.safetensors
check "and is not told as if" bash -c '! grep -q "what was in" get.log'
echo yours > iris.safetensors
patiently "$SHOAL" job watch 1 --server "$link" > get.log
same "$(cat iris.previous.safetensors iris.previous-2.safetensors)" $'mine\nyours' "another file is never written over"
check "the model is there" cmp -s iris.safetensors model.safetensors
check "nothing else is left" test ! -e iris.safetensors.new
refused 1 "job 1 is over: it is finished" work "$link" --job 1 --yes
refused 1 "shoal job resume 1 --epochs N" job resume 1 --server "$link"

# ---- a job that somebody stops, and one that cannot work ----
start long.log host images.net --data packed --epochs 100000 --private --server "$link"
long=$started
until_says "is submitted" long.log
id=$(grep -o 'job [0-9]*, ' long.log | head -1 | tr -cd 0-9)
check "how to invite is told" grep -q "\"job\":$id}' $link/api/v1/tokens" long.log
"$SHOAL" job stop "$id" --server "$link" > /dev/null
wait "$long"
same $? 1 "a job that was stopped: $(cat long.log)"
check "how to go on is told" grep -q "shoal job resume $id --server $link" long.log
start long.log host images.net --data packed --epochs 100000 --quiet --server "$link"
until_true "it is there" bash -c "'$SHOAL' status --job $((id + 1)) --server $link | grep -q ': running'"
kill -INT "$started"
wait "$started"
same $? 130 "Ctrl-C of a watch that says nothing"
check "but that the job goes on" grep -q "continues" long.log
"$SHOAL" job stop $((id + 1)) --server "$link" > /dev/null
refused 2 "give --valid 0.1" host images.net --data packed --early-stop 2 --detach --server "$link"

# ---- status ----
"$SHOAL" status --server "$link" > out
check "the columns have names" grep -Eq "done  train loss  test or valid" out
check "what is measured is named" grep -Eq "iris .* test accuracy [0-9.]+" out
"$SHOAL" status --job 1 --server "$link" > out
check "also of one job: $(cat out)" grep -Eq "^train loss .*, train accuracy .*, test accuracy [0-9.]+$" out

# ---- the volunteer ----
kill -INT "${pids[2]}"
wait "${pids[2]}"
same $? 0 "it leaves"
check "it looks for no server at the end" bash -c '! grep -q "looking for the server" <(tail -n 2 work.log)'
check "it does not wait for what it does: $(grep '^waits' work.log)" bash -c '! grep -q "waits: works for" work.log'

# ---- an invitation that is withdrawn, and the wrong scheme ----
made=$(python3 -c 'import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], b"{\"role\":\"volunteer\",\"name\":\"ann\"}").read().decode())' "$link/api/v1/tokens")
token=$(sed 's/.*"token":"\([^"]*\)".*/\1/' <<< "$made")
number=$(sed 's/.*"id":\([0-9]*\).*/\1/' <<< "$made")
volunteer ann.log "$link/#t=$token" --name ann
ann=$started
until_says "connected to" ann.log
python3 -c 'import sys, urllib.request
urllib.request.urlopen(urllib.request.Request(sys.argv[1], method="DELETE"))' "$link/api/v1/tokens/$number"
until_true "who is not invited any more leaves" bash -c "! kill -0 $ann"
kill -9 "$ann" 2> /dev/null
wait "$ann"
same $? 1 "who is not invited any more leaves: $(cat ann.log)"
check "and says why: $(cat ann.log)" \
  grep -q "the invitation was withdrawn or has expired; ask for a new link" ann.log
check "once connected it looks for nothing" bash -c '! grep -A1 "^left after" ann.log | grep -q "looking for"'
for words in "work LINK --yes" "status --server LINK" "job stop 1 --server LINK" \
  "host images.net --data images --server LINK" "host all.csv --target y --server LINK"; do
  with=https://127.0.0.1:${port[0]} without=http://127.0.0.1:${port[1]}
  # shellcheck disable=SC2086
  refused 1 "127.0.0.1:${port[0]} answers without TLS: its link begins with http://" ${words//LINK/$with}
  # shellcheck disable=SC2086
  refused 1 "127.0.0.1:${port[1]} answers with TLS: its link begins with https://" ${words//LINK/$without}
done
host images.net --data ./packed --name "a name of more letters than fit" --workers 9-9 --detach > waits.log
"$SHOAL" status --server "$link" > status.log
check "a name that is cut says so: $(cat status.log)" grep -q "  a name of more lett…  local  " status.log
id=$(sed -n 's/^job \([0-9]*\),.*/\1/p' waits.log | head -1)
check "of a job that has not begun there are no figures" \
  bash -c "! '$SHOAL' status --job '$id' --server '$link' | grep -q weights"
# Something that speaks neither: it may become a server, and is waited for.
python3 -c 'import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True: server.accept()[0].close()' > port.log &
pids+=($!)
until_true "it listens" test -s port.log
volunteer wrong.log "https://127.0.0.1:$(cat port.log)" --name bob
until_says "if the server has no TLS, its link begins with http://" wrong.log
check "it is still looking" kill -0 "$started"
finish
