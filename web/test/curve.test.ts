import assert from "node:assert/strict";
import { test } from "node:test";
import { addPoints, smooth, thin } from "../src/curve";

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

test("thinning keeps the first point, the last one and the order", () => {
  const kept = thin(
    Array.from({ length: 1001 }, (_, i): [number] => [i]),
    100,
  );
  assert.ok(kept.length <= 100 && kept.length >= 50);
  assert.deepEqual([kept[0], kept[kept.length - 1]], [[0], [1000]]);
  assert.deepEqual(
    kept,
    kept.slice().sort((a, b) => a[0] - b[0]),
  );
  assert.deepEqual(thin([], 10), []);
});

test("old points stay as dense as new ones, however often there were too many", () => {
  const max = 64;
  let points: [number][] = [];
  for (let step = 1; step <= max << 10; step++) points = addPoints(points, [[step]], max);
  assert.ok(points.length <= max && points.length >= max / 2 - 1, `${points.length} points`);
  const gaps = points.slice(1).map(([step], i) => step - points[i]![0]);
  const usual = gaps[1]!;
  assert.ok(
    gaps.slice(0, -1).every((gap) => gap <= usual && gap >= usual - 1),
    gaps.join(),
  );
  assert.equal(points[points.length - 1]![0], max << 10);
});

test("points that the server has thinned already are not thinned to nothing", () => {
  const odd = Array.from({ length: 2000 }, (_, i): [number] => [50 * i + 7]);
  const kept = addPoints(odd, [[100_001]], 4000);
  assert.equal(kept.length, 2001);
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
