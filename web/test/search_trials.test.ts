import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { test } from "node:test";
import { filterOf, settingsText, sortScore, Trials } from "../src/search_trials";
import type { TrialRow } from "../src/search_types";

function row(
  unit: number,
  trial: number,
  score: number | null,
  more: Partial<TrialRow["result"]> = {},
): TrialRow {
  return {
    unit,
    trial,
    rung: 0,
    worker: "desk",
    time: 1000 + unit,
    settings: { layers: 1 + (trial % 4), width: 16 * trial, activation: trial % 2 ? "relu" : "silu" },
    result: {
      failed: false,
      score,
      scores: { accuracy: score },
      epochs: 3,
      best_epoch: 2,
      over: false,
      weights: 100 * trial,
      seconds: 2,
      error: "",
      ...more,
    },
  };
}

function many(count: number): TrialRow[] {
  // Scores that are in no order, some of them alike.
  return Array.from({ length: count }, (_, i) => row(i, i + 1, ((i * 7919) % 1009) / 1009));
}

test("a later unit of a trial takes the place of an earlier one, in whatever order they come", () => {
  const early = row(0, 1, 0.7);
  const late = { ...row(5, 1, 0.8, { epochs: 9 }), rung: 1 };
  for (const rows of [
    [early, late],
    [late, early],
  ]) {
    const trials = new Trials();
    trials.add(rows);
    assert.equal(trials.count, 1);
    const trial = trials.get(1);
    assert.equal(trial?.score, 0.8);
    assert.equal(trial?.epochs, 9);
    assert.equal(trial?.seconds, 4, "the seconds of all its units");
  }
});

test("a unit that comes twice counts once", () => {
  const trials = new Trials();
  assert.ok(trials.add([row(0, 1, 0.7)]));
  assert.equal(trials.add([row(0, 1, 0.7)]), false);
  assert.equal(trials.get(1)?.seconds, 2);
});

test("asking goes on at the first unit that is not known", () => {
  const trials = new Trials();
  assert.equal(trials.from, 0);
  trials.add([row(0, 1, 0.5), row(1, 2, 0.5), row(3, 4, 0.5)]);
  assert.equal(trials.from, 2);
  trials.add([row(2, 3, 0.5)]);
  assert.equal(trials.from, 4);
});

test("the best come first, those without a score last", () => {
  const trials = new Trials();
  trials.add([
    row(0, 1, 0.7),
    row(1, 2, null, { failed: true }),
    row(2, 3, 0.9),
    row(3, 4, 0.9),
    row(4, 5, NaN),
  ]);
  const order = (higher: boolean): number[] => trials.ranked(higher).map((trial) => trial.trial);
  assert.deepEqual(order(true), [3, 4, 1, 2, 5]);
  assert.deepEqual(order(false), [1, 3, 4, 2, 5]);
  assert.equal(sortScore(trials.ranked(true)[4] as never, true), -Infinity);
});

test("best so far only gets better, with every unit and not only the last of a trial", () => {
  const trials = new Trials();
  trials.add([row(2, 2, 0.6), row(0, 1, 0.5), row(3, 1, 0.4), row(1, 3, 0.5), row(4, 4, 0.8)]);
  assert.deepEqual(
    trials.bestSoFar(true).map((point) => [point.time, point.score, point.trial]),
    [
      [1000, 0.5, 1],
      [1002, 0.6, 2],
      [1004, 0.8, 4],
    ],
  );
  assert.deepEqual(
    trials.bestSoFar(false).map((point) => point.score),
    [0.5, 0.4],
  );
});

test("filters compare, and find words in settings", () => {
  const trials = new Trials();
  trials.add(many(40));
  const all = trials.ranked(true);
  const found = (text: string): number => all.filter(filterOf(text)).length;
  assert.equal(found(""), 40);
  assert.equal(found("relu"), 20);
  assert.equal(found("activation=RELU layers=2"), 10);
  assert.equal(found("width>320"), 20);
  assert.equal(found("weights<=500"), 5);
  assert.equal(found("layers=2.0"), 10);
  assert.equal(found("trial:7"), 1);
  assert.equal(found("colour=red"), 0);
  assert.equal(found("width>"), 0);
  assert.equal(
    all.filter(filterOf("score>0.5")).length,
    all.filter((trial) => (trial.score ?? 0) > 0.5).length,
  );
});

test("settings are told in a line", () => {
  assert.equal(settingsText({ layers: 3, shape: "funnel" }), "layers 3, shape funnel");
});

test("5,000 trials are merged, ranked and filtered in a moment", () => {
  const rows = many(5000);
  const began = performance.now();
  const trials = new Trials();
  trials.add(rows);
  const ranked = trials.ranked(true);
  const best = trials.bestSoFar(true);
  const shown = ranked.filter(filterOf("relu width>1000"));
  const tookMs = performance.now() - began;
  assert.equal(ranked.length, 5000);
  for (let i = 1; i < ranked.length; i++)
    assert.ok((ranked[i - 1]?.score as number) >= (ranked[i]?.score as number));
  assert.equal(best[best.length - 1]?.score, ranked[0]?.score);
  assert.ok(shown.length > 0 && shown.length < 5000);
  assert.ok(tookMs < 500, `it took ${tookMs} ms`); // some 20 on a machine that has nothing else to do
});
