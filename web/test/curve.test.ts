import assert from "node:assert/strict";
import { test } from "node:test";
import { addPoints, smooth, thin } from "../src/curve";
import { pauseMs } from "../src/live";
import { guessKind, guessName, sentName } from "../src/upload";

test("smoothing keeps a constant, gaps and the first value", () => {
  assert.deepEqual(smooth([2, 2, null, 2], 10), [2, 2, null, 2]);
  const [first, second] = smooth([0, 1], 2);
  assert.equal(first, 0);
  assert.ok(second! > 0.5 && second! < 1);
  const noisy = smooth(
    Array.from({ length: 400 }, (_, i) => i % 2),
    20,
  );
  assert.ok(noisy.slice(200).every((v) => Math.abs(v! - 0.5) < 0.05));
});

test("thinning keeps the last point and the order", () => {
  const kept = thin(
    Array.from({ length: 1001 }, (_, i) => i),
    100,
  );
  assert.ok(kept.length <= 100 && kept.length >= 50);
  assert.equal(kept[kept.length - 1], 1000);
  assert.deepEqual(
    kept,
    kept.slice().sort((a, b) => a - b),
  );
});

test("points that come twice are taken once", () => {
  const points = addPoints(
    [
      [1, 5],
      [2, 6],
    ],
    [
      [2, 7],
      [3, 8],
    ],
    10,
  );
  assert.deepEqual(points, [
    [1, 5],
    [2, 6],
    [3, 8],
  ]);
});

test("pauses grow, with a limit", () => {
  assert.equal(pauseMs(0, 0.5), 500);
  assert.ok(pauseMs(3, 0) > pauseMs(0, 1));
  assert.ok(pauseMs(50, 1) <= 20_000);
});

test("files tell what they are and what to call them", () => {
  assert.equal(guessKind(["train.CSV.gz"]), "csv");
  assert.equal(guessKind(["data_batch_1.bin"]), "cifar");
  assert.equal(guessKind(["train-images-idx3-ubyte.gz"]), "idx");
  assert.equal(guessKind(["novel.txt"]), "text");
  assert.equal(guessName("Wine Quality (red).csv"), "wine-quality-red");
  assert.equal(guessName("鱼.csv"), "data");
  assert.equal(sentName("Wine Quality (red).csv"), "Wine-Quality-red-.csv");
  assert.match(sentName(`${"x -.".repeat(60)}.csv`), /^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/);
});
