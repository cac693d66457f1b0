#!/usr/bin/env bash
# Named data sets: a download that was stopped in the middle is taken up again. The mirror is the
# folder where Debian's package puts Fashion-MNIST.
. "$(dirname "$0")/common.bash"
set=fashion-mnist
here=/usr/share/datasets
mine=$XDG_DATA_HOME/shoal/$set
check "the list has it" grep -q "^$set" <("$SHOAL" data list)
if [ -e "$here/$set/train-images-idx3-ubyte.gz" ] && command -v curl > /dev/null; then
  check "what is here is not brought again" grep -q "is here already: $here/$set" <("$SHOAL" data get $set)
  mkdir -p "$mine"
  cp "$here/$set/train-images-idx3-ubyte.gz" "$mine"
  SHOAL_DATA_MIRROR=file://$here "$SHOAL" data get $set > out 2> err || fail "data get: $(cat err)"
  same "$(cd "$mine" && echo *)" "$(cd "$here/$set" && echo *.gz)" "the files of the set"
  check "they are whole" grep -q "every checksum is right" <("$SHOAL" data info $set)
  check "now it is here" grep -q "is here already: $mine" <("$SHOAL" data get $set)
fi
finish
