# server.bash: what the tests of commands share that begin servers and volunteers; after common.bash.
export XDG_CACHE_HOME=$folder/cache
unset SHOAL_LINK
pids=()
trap '[ $BASHPID = $$ ] && { kill -9 "${pids[@]}" 2> /dev/null; rm -rf "$folder"; }' EXIT

# refused STATUS TEXT WORD...: shoal with these words ends with the status and the complaint; and no
# token, which has "secret" in it where there is one, is repeated.
refused() {
  local status=$1 text=$2
  shift 2
  patiently "$SHOAL" "$@" > out 2> err < /dev/null
  same $? "$status" "the exit status of: $*"
  check "$*: '$(cat err)' tells '$text'" grep -Fq -- "$text" err
  check "$*: no token in '$(cat err)'" bash -c '! grep -q "secret" out err'
}

# start LOG WORD...: a command in the background; its number in $started.
start() {
  local log=$1
  shift
  rm -f "$log"
  "$SHOAL" "$@" > "$log" 2>&1 < /dev/null &
  started=$!
  pids+=("$started")
}

# volunteer LOG LINK WORD...: one that works whatever else the machine does; its number in $started.
volunteer() {
  local log=$1 link=$2
  shift 2
  start "$log" work "$link" --yes --no-pause --on-battery "$@"
}
