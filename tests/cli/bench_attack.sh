#!/usr/bin/env bash
# The measurement of attacks: the same bits again, liars found by audits, honest ones left alone, clear refusals.
. "$(dirname "$0")/common.bash"
export TMPDIR=$folder

# Ten classes of 28x28 images: a bright band, in noise.
mkdir images
python3 - <<'PYTHON'
import random, struct
random.seed(7)
for name, count in (("train", 1400), ("t10k", 500)):
    images, labels = bytearray(), bytearray()
    for i in range(count):
        label = i % 10
        for y in range(28):
            level = 100 if (y - 1) // 3 in (label, label + 1) else 0
            images += bytes(level + v // 2 for v in random.randbytes(28))
        labels.append(label)
    with open(f"images/{name}-images-idx3-ubyte", "wb") as file:
        file.write(struct.pack(">4i", 2051, count, 28, 28) + images)
    with open(f"images/{name}-labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">2i", 2049, count) + labels)
PYTHON

attack() { patiently "$SHOAL" bench attack --data ./images "$@"; }

attack --epochs 12 --defence mean,mean+audits --json > all.json 2> err
same $? 0 "bench attack --json"
same "$(grep -v ' eta ' err)" "" "it says nothing but how far it is on standard error"
check "every attack is there, and audits undo it" python3 - <<'PYTHON'
import json
rows = [json.loads(line) for line in open("all.json")]
keys = ["data", "deal", "attack", "defence", "audits", "accuracy", "rounds", "units", "units_audited", "banned",
        "banned_honest", "went_back", "rounds_lost", "lies_kept", "sha256", "seconds"]
assert all(list(r) == keys for r in rows), rows[0]
assert len(rows) == 2 * 8 * 2, len(rows)
by_place = {(r["deal"], r["attack"], r["defence"]): r for r in rows}
assert len(by_place) == len(rows)
for deal in ("even", "uneven"):
    free = by_place[deal, "none", "mean"]
    assert free["accuracy"] > 0.9, free
    for attack in ("none", "noise", "flip", "labels", "alie", "inner", "copy", "traitor"):
        bare, ours = by_place[deal, attack, "mean"], by_place[deal, attack, "mean+audits"]
        assert bare["units_audited"] == bare["banned"] == ours["banned_honest"] == 0, (bare, ours)
        if attack == "traitor":
            continue
        assert ours["banned"] == (0 if attack == "none" else 4), ours
        assert ours["lies_kept"] == 0 and ours["sha256"] == free["sha256"], ours
        assert (bare["sha256"] == free["sha256"]) == (attack == "none"), bare
PYTHON

some=(--epochs 2 --deal uneven --attack alie,traitor --defence "median,krum:4,clip/2,clip+audits" --json)
attack "${some[@]}" --threads 1 | sed 's/"seconds.*//' > one
SHOAL_KERNELS=baseline attack "${some[@]}" --threads 3 | sed 's/"seconds.*//' > other
same "$(wc -l < one)" 8 "a line a training"
check "the same bits with other threads and other kernels" cmp one other
attack "${some[@]}" --seed 2 | sed 's/"seconds.*//' > other
check "another seed is another training" test "$(cat one)" != "$(cat other)"

attack --epochs 1 --deal even --attack none,flip --defence median,mean+audits > out
same $? 0 "bench attack"
check "a table" grep -Eq "^attack +median +mean\+audits$" out
check "with accuracies" grep -Eq "^flip +[0-9.]+ +[0-9.]+$" out
check "and what audits did" grep -Eq "^mean\+audits: lowest .* 4 workers banned \(0 honest\)" out

refused() { # WHAT TEXT OPTION...: wrong usage that says so
  local what=$1 text=$2
  shift 2
  attack "$@" > out 2> err
  same $? 2 "$what is wrong usage"
  check "$what: '$text' in $(cat err)" grep -qF -- "$text" err
}
refused "an unknown attack" "--attack: 'bribe' is not one of none, noise" --attack bribe
refused "an unknown rule" "--defence: 'modus' is no rule" --defence modus
refused "a rule that needs more" "2 x 6 + 3 = 15 contributions a round, and there are 14" --defence krum:6
refused "an empty word" "--attack: 'none,' is not a list" --attack none,
refused "a word twice" "--defence: 'clip' is there twice" --defence clip,median,clip
refused "an unknown deal" "--deal: 'odd' is not one of even, uneven" --deal odd

"$SHOAL" bench attack --liars 500 --json > liars.json 2> err
same $? 0 "bench attack --liars"
check "newcomers are found at once, the trusted soon, and the honest pay little" python3 - <<'PYTHON'
import json
rows = [json.loads(line) for line in open("liars.json")]
assert rows[0]["honest_units"] == 0 and rows[0]["lies_100"] == 1, rows[0]
for a, b in zip(rows, rows[1:]):
    assert b["honest_units"] > a["honest_units"] and b["lies_90"] >= a["lies_90"], (a, b)
for r in rows:
    assert 1 <= r["lies_50"] <= r["lies_90"] <= r["lies_99"] <= r["lies_100"] < 1000, r
last = rows[-1]
assert last["audited_lately"] < 0.05 and last["audited"] < 0.05 and 15 <= last["lies_50"] <= 30, last
PYTHON
"$SHOAL" bench attack --liars 20 > out
same "$(wc -l < out)" 8 "a line for each life before, and the head"

make_images small 50 50
patiently "$SHOAL" bench attack --data ./small > out 2> err
same $? 1 "data of another shape"
finish
