import assert from "node:assert/strict";
import { test } from "node:test";
import {
  axesOf,
  linearAxis,
  logAxis,
  logTicks,
  nearestLine,
  nearestPoint,
  niceTicks,
  numberAxis,
  placesOf,
  rangeOf,
  robustRange,
  wordAxis,
} from "../src/search_axes";
import { settingsText, type Trial } from "../src/search_trials";
import type { Setting } from "../src/search_types";

function trial(number: number, score: number | null, settings: Record<string, Setting>): Trial {
  return {
    trial: number,
    unit: number,
    rung: 0,
    worker: "desk",
    time: number,
    settings,
    text: settingsText(settings),
    failed: false,
    error: "",
    over: false,
    score,
    scores: {},
    epochs: 1,
    bestEpoch: 1,
    weights: 1,
    seconds: 1,
  };
}

test("one trial that exploded does not spoil the range of the others", () => {
  const values = Array.from({ length: 100 }, (_, i) => 50 + i / 100);
  const [low, high] = robustRange([...values, 1e9]);
  assert.ok(low >= 49 && high < 53, `${low} to ${high}`);
  assert.deepEqual(robustRange([]), [0, 1]);
  const [a, b] = robustRange([2, 2, 2]);
  assert.ok(a < 2 && b > 2);
});

test("ticks are round numbers within the range", () => {
  assert.deepEqual(niceTicks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(niceTicks(0.812, 0.861, 5), [0.82, 0.83, 0.84, 0.85, 0.86]);
  assert.deepEqual(logTicks(1, 1000, 5), [1, 10, 100, 1000]);
  for (const tick of logTicks(30, 40_000, 6)) assert.ok(tick >= 29 && tick <= 40_100);
});

test("ticks that are near one another have texts of their own", () => {
  const texts = linearAxis("rmse", 58_000, 60_000, 5).ticks.map((tick) => tick.text);
  assert.equal(new Set(texts).size, texts.length, texts.join(" "));
});

test("places go from 0 to 1 and stay there", () => {
  const linear = linearAxis("x", 10, 20, 5);
  assert.deepEqual([10, 15, 20, 0, 99].map(linear.place), [0, 0.5, 1, 0, 1]);
  const log = logAxis("x", 1, 100, 5);
  assert.deepEqual(
    [1, 10, 100, 0].map((n) => Number(log.place(n).toFixed(6))),
    [0, 0.5, 1, 0],
  );
  const words = wordAxis("x", ["a", "b", "c"]);
  assert.deepEqual(["a", "b", "c"].map(words.place), [0, 0.5, 1]);
  for (const axis of [linear, log, words])
    for (const value of [null, undefined]) assert.ok(Number.isNaN(axis.place(value)));
});

test("numbers that differ much get a logarithmic axis", () => {
  const much = numberAxis("weights", [100, 1_000, 100_000], 5);
  assert.ok(Math.abs(much.place(Math.sqrt(100 * 100_000)) - 0.5) < 1e-6);
  const little = numberAxis("weights", [100, 300], 5);
  assert.equal(little.place(200), 0.5);
  const one = numberAxis("weights", [100], 5);
  assert.equal(one.place(100), 0.5);
});

test("settings with one value have no axis, and the score has the last one", () => {
  const trials = [
    trial(1, 0.5, { layers: 1, width: 32, optimizer: "adamw", shape: "brick" }),
    trial(2, 0.7, { layers: 3, width: 64, optimizer: "adamw" }),
    trial(3, null, { layers: 2, width: 128, optimizer: "adamw", shape: "funnel" }),
  ];
  const axes = axesOf(trials, "accuracy");
  assert.deepEqual(
    axes.map((axis) => axis.name),
    ["layers", "width", "shape", "accuracy"],
  );
  const places = placesOf(trials, axes);
  assert.deepEqual([places[0], places[4], places[8]], [0, 1, 0.5]);
  assert.ok(Number.isNaN(places[4 + 2]), "a setting without effect has no place");
  assert.ok(Number.isNaN(places[8 + 3]), "nor has a score that there is not");
});

test("what is nearest to the pointer is found", () => {
  const places = new Float32Array([0, 1, 1, 0, 0.2, 0.2, NaN, 0.5]); // four lines, two axes
  assert.equal(nearestLine(places, 2, 0, 0.95, 0.1), 1);
  assert.equal(nearestLine(places, 2, 0.5, 0.22, 0.1), 2);
  assert.equal(nearestLine(places, 2, 1, 0.99, 0.1), 0);
  assert.equal(nearestLine(places, 2, 0.5, 0.9, 0.1), -1);
  const xs = new Float32Array([0, 10, 20]);
  const ys = new Float32Array([0, 10, 0]);
  assert.equal(nearestPoint(xs, ys, 11, 9, 5), 1);
  assert.equal(nearestPoint(xs, ys, 100, 100, 5), -1);
});

test("ranges of very many values are found", () => {
  const many = Array.from({ length: 300_000 }, (_, i) => i);
  assert.deepEqual(rangeOf(many), [0, 299_999]);
  assert.deepEqual(rangeOf([NaN]), [0, 1]);
});
