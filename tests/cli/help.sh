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
finish
