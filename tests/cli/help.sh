#!/usr/bin/env bash
# Every command explains itself, and a misspelt one is guessed.
. "$(dirname "$0")/common.bash"

for command in train launch eval predict inspect export data bench sim version; do
  "$SHOAL" "$command" --help > out 2> err
  same $? 0 "shoal $command --help"
  check "shoal $command --help has examples" grep -q "^Examples:" out
  check "shoal $command --help shows how it is used" grep -q "^Usage: shoal $command" out
  check "an example of shoal $command starts with it" grep -Eq "^  (SHOAL_KERNELS=baseline )?shoal $command" out
  same "$(cat err)" "" "shoal $command --help says nothing on standard error"
  same "$("$SHOAL" help "$command")" "$(cat out)" "shoal help $command"
  same "$("$SHOAL" "$command" -h)" "$(cat out)" "shoal $command -h"
  check "shoal lists $command" grep -q "^  $command " <("$SHOAL")
  COLUMNS=60 "$SHOAL" "$command" --help | sed '/^Examples/,$d; /^Usage/d; /^   or/d' > narrow
  same "$(awk 'length > 60' narrow)" "" "shoal $command --help keeps to 60 columns"
done

for verb in "agent train" "agent play" "bench train"; do
  same "$("$SHOAL" help $verb)" "$("$SHOAL" $verb --help)" "shoal help $verb"
done
"$SHOAL" help train mnist > out 2> err
same $? 2 "shoal help of two commands"

"$SHOAL" > out
same $? 0 "shoal alone"
same "$("$SHOAL" --help)" "$(cat out)" "shoal --help"
same "$("$SHOAL" help)" "$(cat out)" "shoal help"
check "shoal --version" grep -Eq "^shoal [0-9]+\.[0-9]+\.[0-9]+$" <("$SHOAL" --version)

# Examples must parse: none of them may be refused as wrong usage (status 2).
for command in train launch eval predict inspect export data bench sim; do
  "$SHOAL" "$command" --help | sed -n '/^Examples:/,$s/^  shoal //p' | grep -v "get\|bench" |
    while read -r example; do
      eval "timeout 5 \"$SHOAL\" $example" > /dev/null 2> err
      [ $? -ne 2 ] || echo "$example"
    done > refused
  same "$(cat refused)" "" "examples of shoal $command"
done
# ---- a repository that was moved is built anew, and says so ----
mkdir -p moved/CMakeFiles stand-in
echo "CMAKE_HOME_DIRECTORY:INTERNAL=/where/it/was" > moved/CMakeCache.txt
printf '#!/bin/sh\n' > stand-in/cmake
chmod +x stand-in/cmake
same "$(PATH=$PWD/stand-in:$PATH "$SOURCE_DIR/tools/configure" "$PWD/moved" 2>&1)" \
  "$PWD/moved was made when the repository was in /where/it/was; building it anew" "a moved repository"
check "nothing of the old build is used" test ! -e moved/CMakeCache.txt -a ! -e moved/CMakeFiles
echo "CMAKE_HOME_DIRECTORY:INTERNAL=$SOURCE_DIR" > moved/CMakeCache.txt
same "$(PATH=$PWD/stand-in:$PATH "$SOURCE_DIR/tools/configure" "$PWD/moved" 2>&1)" "" "one that was not"
check "its build stays" test -e moved/CMakeCache.txt
finish
