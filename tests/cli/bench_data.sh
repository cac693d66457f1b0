#!/usr/bin/env bash
# shoal bench data: wrong usage; and, where there are network namespaces, a small swarm, a file server and a tree.
. "$(dirname "$0")/common.bash"

refused() {
  local status=$1 text=$2
  shift 2
  patiently "$SHOAL" bench data "$@" > out 2> err < /dev/null
  same $? "$status" "the exit status of: $*"
  check "$*: '$(cat err)' tells '$text'" grep -Fq -- "$text" err
}
refused 2 "--workers: '0' is not a list" --workers 0
refused 2 "--workers: '4,x' is not a list" --workers 4,x
refused 2 "--workers: '999' is not a list" --workers 999
refused 2 "--way: 'boat' is not one of" --way boat
refused 2 "are for the swarm" --way tree --kill 0.5

if [ "$(id -u)" = 0 ] && ip netns add "shoal-try-$$" 2> /dev/null; then
  ip netns del "shoal-try-$$"
  run() { patiently "$SHOAL" bench data --json --size 8 --rate 200 "$@" > out 2> err; }
  for words in "--way swarm" "--way server" "--way tree" "--bad 0.3" "--kill 0.3"; do
    # shellcheck disable=SC2086
    run --workers 3 $words
    same $? 0 "$words: $(cat err)"
    same "$(field done out)" "$(field alive out)" "$words: all that are alive have everything"
    same "$(field wrong_chunks out)" 0 "$words: nothing wrong was used"
  done
  same "$(field killed out)" 1 "one was killed"
  run --workers 3 --way server
  same "$(field server_copies out)" 3 "a file server sends it to each"
  run --workers 3 --way tree
  same "$(field server_copies out)" 2 "a tree of 3: two from the server, one from the first"
fi
finish
