#!/usr/bin/env bash
# A server, volunteers and hosts as people would use them: links with tokens, data that goes up and comes down,
# workers that come, pause, are killed and leave, and what everyone is told.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/server.bash"
make_images images 20000 200
make_models
sed -i 's/epochs 3/epochs 2/' images.net

# ask EXPRESSION WORD...: what `shoal status --json` of the server tells, by an expression of Python on `s`.
ask() {
  local expression=$1
  shift
  "$SHOAL" status --json --server "$link" "$@" |
    python3 -c 'import json, sys; s = json.load(sys.stdin); print(eval(sys.argv[1]))' "$expression"
}
tells() { [ "$(ask "$2" "${@:3}")" = "$1" ]; }

# ---- wrong usage ----
refused 2 "LINK is missing" work
refused 2 "there is no port" work somewhere
refused 2 "characters that no host has" work 'http://a b:1/#t=secret'
refused 2 "needs https" work "http://h:1/#t=secret&fp=$(printf '%064d' 0)"
refused 2 "characters that no token has" work 'h:1#t=secret%20'
refused 2 "--hours: '7' is no time" work h:1 --hours 7
refused 2 "--memory: '4' is no size" work h:1 --memory 4
refused 2 "--cache-size: 'x' is no size" work h:1 --cache-size x
refused 2 "give one of them" work h:1 --job 1 --host alice
refused 1 "give another folder with --cache" work h:1 --yes --cache /proc/self
refused 2 "give one of them" work h:1 --pause-load 1 --no-pause
refused 2 "--cores: 0 is out of range" work h:1 --cores 0
refused 2 "is too long; it takes at most 32 bytes" work h:1 --name "$(printf '%033d' 0)"
refused 2 "is too long; it takes at most 63 bytes" work h:1 --host "$(printf '%064d' 0)"
refused 2 "missing.token" work h:1 --token-file missing.token
SHOAL_LINK='h:1#t=not secret' refused 2 "SHOAL_LINK: 'h:1' is no link to a server: its token has characters" status
SHOAL_LINK='h:1#t=not secret' refused 2 "its token has characters" work
refused 2 "--data is missing" host images.net
refused 2 "MODEL.net or TABLE.csv is missing" host --data images
refused 2 "--workers: '0' is not MIN-MAX" host images.net --data images --workers 0
refused 2 "--workers: '5-2' is not MIN-MAX" host images.net --data images --workers 5-2
refused 2 "with --detach no model comes back" host images.net --data images --detach --out x
refused 2 "--wire: 'f16' is not one of" host images.net --data images --wire f16
refused 2 "there is no port" host images.net --data images --server nowhere#t=secret
refused 2 "did you mean 'stop'?" job stpo 7
refused 2 "'x' is no number of a job" job stop x
refused 2 "--epochs is for" job stop 7 --epochs 3
refused 2 "there is no port" status --server nowhere#t=secret
refused 2 "unexpected argument 'http://h:1/'" status 'http://h:1/#t=secret'
refused 2 "'http://h:1/' is no number of a job" job stop 'http://h:1/#t=secret'
refused 2 "'http://h:1/' is not one of watch" job 'http://h:1/#t=secret' 7
refused 2 "--epochs: 'http://h:1/' is not a whole number" job resume 7 --epochs 'http://h:1/#t=secret'
refused 2 "unknown command 'http://h:1/'" 'http://h:1/#t=secret'
refused 2 "'http://h:1/' is a link; the server's is given with --server" host 'http://h:1/#t=secret' --data images
refused 2 "'http://h:1/' is a link; the server's is given with --server" host images.net --data 'http://h:1/#t=secret'
refused 2 "--out is for 'shoal job watch' and 'shoal job get'" job stop 7 --out x
refused 2 "'nowhere' is no address" serve --listen nowhere --data-dir not-made
refused 1 "there is no file missing.pem" serve --certificate missing.pem --key missing.key --data-dir not-made
refused 1 "there is no folder missing" serve --sets missing --data-dir not-made
[[ ! -e not-made ]] || fail "a server that was refused has made its folder"
refused 1 "neither a path (for SQLite) nor postgresql://" serve --store mysql://shoal@localhost/shoal --data-dir refused
mapfile -t port < <(ports 2)
refused 1 "is there a server?" job watch 7 --server "127.0.0.1:${port[1]}#t=secret"
refused 1 "is there a server?" status --server "127.0.0.1:${port[1]}#t=secret"
refused 1 "is there a server?" host images.net --data images --server "127.0.0.1:${port[1]}#t=secret"
refused 1 "missing.net" host missing.net --data images --server "127.0.0.1:${port[1]}"
echo "input nonsense" > wrong.net
refused 1 "wrong.net:1" host wrong.net --data images --server "127.0.0.1:${port[1]}"

# ---- a server ----
serve() {
  "$SHOAL" serve --listen "127.0.0.1:${port[0]}" --data-dir server --tls --open nobody "$@" >> serve.log 2>&1 &
  server=$!
  pids+=("$server")
}
# work NAME WORD...: a volunteer, with what it says in NAME.log; its number in $worker.
work() {
  local name=$1
  shift
  volunteer "$name.log" "$link" --name "$name" "$@"
  worker=$started
}
serve
until_true "the server tells where its link is" says "The link in server/admin.link makes you its admin" serve.log
same "$(stat -c %a server/admin.link)" 600 "nobody else may read the link"
link=$(cat server/admin.link)
token=${link##*#t=}
token=${token%%&*}
until_true "the server answers" tells 0 's["server"]["workers"]'
same "$("$SHOAL" status --server "${link%%#*}#t=secret&${link##*&}" 2>&1 | grep -c token)" 1 "a wrong token is told"
SHOAL_LINK=$link "$SHOAL" status > /dev/null
same $? 0 "the link from the environment"
is_for() { openssl x509 -in server/certificate.pem -noout -ext subjectAltName | grep -q "$1"; }
for name in localhost 127.0.0.1 "$(hostname)" $(hostname -I | tr ' ' '\n' | grep -v : | head -n 2); do
  check "the certificate is for $name" is_for "$name"
done
fingerprint=$(openssl x509 -in server/certificate.pem -noout -fingerprint -sha256)
"$SHOAL" status --server "${link%%&*}&fp=${fingerprint##*=}" > /dev/null
same $? 0 "the certificate's own fingerprint"
echo "$token" > token
"$SHOAL" status --server "${link%%#*}#${link##*&}" --token-file token > /dev/null
same $? 0 "the token from a file"
refused 1 "does not let this machine in" work "${link%%#*}#t=secret&${link##*&}" --yes
refused 1 "its fingerprint" work "${link%%#*}#t=secret" --yes
refused 1 "neither the server nor this machine has data called 'nothing'" host images.net --data nothing --server "$link"
refused 1 "there is no job 99" job stop 99 --server "$link"

# ---- volunteers and a host ----
work one --cores 1 --cache mine --once
one=$worker
until_true "the worker is told why it has no work" says "waits: no job is open" one.log
check "it says for whom it works" grep -q "This lends the machine, as 'one', to .*127.0.0.1:${port[0]}" one.log
check "it says how to stop it" grep -q "Ctrl-C leaves in order" one.log
same "$(tr '\0' ' ' < /proc/"$one"/cmdline | grep -cF -e "$token")" 0 "the token is not in the list of processes"
check "the server knows it" tells "['one']" '[w["name"] for w in s["workers"]]'
patiently "$SHOAL" host images.net --data ./images --server "$link" --out got.safetensors > host.log 2>&1
same $? 0 "shoal host: $(cat host.log)"
check "the data was sent" grep -q "sending images to the server: 4 files" host.log
check "its epochs were shown" grep -q "epoch 2/2  train loss .* test loss" host.log
check "its end was told" grep -q "job 1 is finished" host.log
check "the model can be used" "$SHOAL" eval got.safetensors --data images
until_true "--once leaves after the job" bash -c "! kill -0 $one"
wait "$one"
same $? 0 "its exit status: $(tail -3 one.log)"
check "it counts" grep -Eq "left after .*: [1-9][0-9,]* units" one.log
check "data is in the cache" test "$(find mine/sets -name '*-ubyte' | wc -l)" = 4
check "nothing is written elsewhere by it" test ! -e cache/shoal/sets
same "$(grep -cF -e "$token" one.log host.log serve.log | tr '\n' ' ')" "one.log:0 host.log:0 serve.log:0 " "the token is in no log"

# The same data is not sent again; other data under that name is not taken for it.
"$SHOAL" host images.net --data images --server "$link" --detach > host.log 2>&1
same $? 0 "a second job: $(cat host.log)"
check "the data is there" bash -c '! grep -q sending host.log'
check "how to go on is told, without the token" bash -c "grep -q 'shoal job watch 2' host.log && ! grep -q $token host.log"
check "a link with a secret is LINK" bash -c "grep -q \"shoal job watch 2 --server 'LINK'\" host.log && grep -q 'LINK is the one you gave' host.log"
make_images other/images 100 10
refused 1 "the server has another data set that is called 'images'" host images.net --data other/images --server "$link"

# ---- a worker is killed, the server is killed ----
work two --cores 1 --cache mine --json
two=$worker
work three --cores 1 --cache mine
until_true "both work" tells "['three', 'two']" 'sorted(w["name"] for w in s["workers"] if w["job"] == 2)'
kill -9 "$two" "$server"
wait "$server" 2> /dev/null # its port is free then
serve --names shoal.example # for which the certificate is made again: links stay good
until_true "the one that is left notices" says "lost the server" three.log
until_true "the certificate has the new name" is_for shoal.example
until_true "and comes back" bash -c '[ "$(grep -c "connected to" three.log)" -ge 2 ]'
patiently "$SHOAL" job watch 2 --server "$link" --out again.safetensors > watch.log 2>&1
same $? 0 "the job goes on: $(cat watch.log)"
check "and gives the same model" cmp -s <("$SHOAL" inspect got.safetensors --json | grep -o '"sha256":"[^"]*"') \
  <("$SHOAL" inspect again.safetensors --json | grep -o '"sha256":"[^"]*"')
check "JSON lines of a worker" python3 -c 'import json
for line in open("two.log"): json.loads(line)'

# ---- a host that leaves, and what it can do then ----
"$SHOAL" host images.net --data images --epochs 500 --server "$link" > host.log 2>&1 &
host=$!
pids+=("$host")
until_true "the third job runs" tells running 's["job"]["state"]' --job 3
until_true "its first epoch is over" tells True 's["job"]["progress"]["epoch"] >= 1' --job 3
kill -INT "$host"
wait "$host"
same $? 130 "Ctrl-C leaves the job alone"
check "and says so" grep -q "the job continues" host.log
check "it runs" tells running 's["job"]["state"]' --job 3
"$SHOAL" job stop 3 --server "$link" > out
same $? 0 "shoal job stop"
until_true "it is stopped" tells stopped 's["job"]["state"]' --job 3
until_true "its worker waits" tells "['idle']" '[w["state"] for w in s["workers"]]'
check "shoal job get" "$SHOAL" job get 3 --out part.safetensors --server "$link"
"$SHOAL" job resume 3 --server "$link" > /dev/null
until_true "it runs again" tells running 's["job"]["state"]' --job 3

# ---- Ctrl-C of a worker in the middle of its work ----
until_true "the worker works" tells "['computing']" '[w["state"] for w in s["workers"]]'
kill -INT "$worker"
wait "$worker"
same $? 0 "Ctrl-C of a worker: $(tail -3 three.log)"
check "it did not wait for the end of its job" bash -c "! '$SHOAL' status --job 3 --server '$link' | grep -q ': finished'"
check "it says what it did" grep -q "^left after" three.log

# ---- one that may not work now ----
hour=$(date +%-H)
work four --cache mine --hours "$(((hour + 2) % 24))-$(((hour + 3) % 24))"
until_true "it pauses" says "paused: outside the hours" four.log
until_true "the server knows" tells "paused None" '"%s %s" % (s["workers"][0]["state"], s["workers"][0]["job"])'
kill -INT "$worker"
wait "$worker"
same $? 0 "it leaves"

work five --cache mine
until_true "somebody works again" tells "['computing']" '[w["state"] for w in s["workers"]]'
"$SHOAL" job stop 3 --server "$link" > /dev/null
until_true "it is stopped again" tells stopped 's["job"]["state"]' --job 3
"$SHOAL" job delete 3 --server "$link" > out
same "$(cat out)" "job 3 is deleted" "shoal job delete"
refused 1 "there is no job 3" status --job 3 --server "$link"
check "tables" bash -c "'$SHOAL' status --server '$link' | grep -Eq '^ +2  images +.* finished'"

# ---- a job that waits for more workers than there are ----
"$SHOAL" host images.net --data images --workers 2 --server "$link" --detach > host.log 2>&1
same $? 0 "a job for two workers: $(cat host.log)"
until_true "its only worker waits with it" tells "4 idle" '"%s %s" % (s["workers"][0]["job"], s["workers"][0]["state"])'
check "who waits so is idle in the sum, too" tells 1 's["server"]["idle"]'
check "and in the tables" bash -c "'$SHOAL' status --server '$link' | grep -q '^workers: 1, 1 of them idle'"
patiently "$SHOAL" host images.net --data images --server "$link" --out between.safetensors > host.log 2>&1
same $? 0 "a later job gets that worker: $(cat host.log)"
check "the first one still waits" tells "waiting 0" '"%s %s" % (s["job"]["state"], s["job"]["progress"]["step"])' --job 4
work six --cores 1 --cache mine
patiently "$SHOAL" job watch 4 --server "$link" --out both.safetensors > watch.log 2>&1
same $? 0 "it begins when there are two: $(cat watch.log)"

# ---- names ----
name="a host whose name has fifty bytes and is shown whole"
made=$(curl -fsS --cacert server/certificate.pem -H "Authorization: Bearer $token" \
  -d "{\"role\":\"host\",\"name\":\"$name\"}" "https://127.0.0.1:${port[0]}/api/v1/tokens")
theirs=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["link"])' "$made")
long=$(printf '%070d' 0)
cp images.net "$long.net"
"$SHOAL" host "$long.net" --data images --server "$theirs" --detach > host.log 2>&1
same $? 0 "a job of that host: $(cat host.log)"
check "the host's name is whole, the file's is shortened visibly" bash -c "'$SHOAL' status --job 6 --server '$link' | grep -q '^job 6, ${long::61}…, of $name:'"
finish
