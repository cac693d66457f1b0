# server.bash: what the tests of commands share that begin servers and volunteers; after common.bash.
export XDG_CACHE_HOME=$folder/cache
unset SHOAL_TOKEN
pids=()
trap 'kill -9 "${pids[@]}" 2> /dev/null; rm -rf "$folder"' EXIT

# refused STATUS TEXT WORD...: shoal with these words ends within some seconds, with the status and the complaint; and no
# token, which has "secret" in it where there is one, is repeated.
refused() {
  local status=$1 text=$2
  shift 2
  timeout -s KILL 40 "$SHOAL" "$@" > out 2> err < /dev/null
  same $? "$status" "the exit status of: $*"
  check "$*: '$(cat err)' tells '$text'" grep -Fq -- "$text" err
  check "$*: no token in '$(cat err)'" bash -c '! grep -q "secret" out err'
}

# until_true WHAT COMMAND...: waits for a command to succeed, at most a minute and a half: volunteers have the lowest
# priority, and wait for whatever else the machine does.
until_true() {
  local what=$1
  shift
  checks=$((checks + 1))
  for _ in $(seq 900); do
    "$@" 2> /dev/null && return
    sleep 0.1
  done
  fail "$what"
}
says() { grep -Fqs -- "$1" "$2"; }
# until_says TEXT FILE: waits for a line.
until_says() {
  until_true "'$1' is not in $2" says "$1" "$2"
  says "$1" "$2" || cat "$2" >&2
}

# start LOG WORD...: a command in the background; its number in $started.
start() {
  local log=$1
  shift
  "$SHOAL" "$@" > "$log" 2>&1 < /dev/null &
  started=$!
  pids+=("$started")
}
