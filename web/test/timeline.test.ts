import assert from "node:assert/strict";
import { test } from "node:test";
import { arrange } from "../src/timeline";
import type { Unit } from "../src/types";

function unit(worker: string, start: number, end: number | null): Unit {
  return { round: 1, first: 0, count: 1, worker, start, end, again: false };
}

test("a row a worker, by name, with numbers in their order", () => {
  const units = [unit("pc10", 1, 2), unit("pc9", 2, 3), unit("ann", 1, 2), unit("pc9", 3, 4)];
  assert.deepEqual(arrange(units, 5).workers, ["ann", "pc9", "pc10"]);
});

test("the time goes from the first start to the last end, and to now for what is under way", () => {
  assert.deepEqual(arrange([unit("a", 3, 4), unit("b", 1, 2)], 9).span, { from: 1, to: 4 });
  assert.deepEqual(arrange([unit("a", 3, 4), unit("b", 1, null)], 9).span, { from: 1, to: 9 });
});

test("a span is never empty, so that nothing is divided by nothing", () => {
  assert.deepEqual(arrange([], 9), { workers: [], span: { from: 0, to: 1 } });
  const { span } = arrange([unit("a", 3, 3)], 9);
  assert.ok(span.to > span.from);
});
