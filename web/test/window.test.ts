import assert from "node:assert/strict";
import { test } from "node:test";
import { windowOf, windowOfRows } from "../src/window";

test("heights of what is and is not drawn add up to the whole table", () => {
  for (const count of [0, 1, 5, 20, 1000]) {
    for (const top of [-50, 0, 13, 440, 20_000, 1e9]) {
      const w = windowOf(top, 440, 44, count, 3);
      assert.equal(w.above + (w.end - w.first) * 44 + w.below, count * 44);
      assert.ok(w.first >= 0 && w.end <= count && w.first <= w.end);
    }
  }
});

test("all rows in sight are drawn, and few others", () => {
  const w = windowOf(1000, 440, 44, 1000, 3);
  assert.ok(w.first * 44 <= 1000 && w.end * 44 >= 1440);
  assert.ok(w.end - w.first <= 11 + 1 + 6);
});

test("a table that got shorter than where it was scrolled to shows its end", () => {
  const w = windowOf(40_000, 440, 44, 20, 3);
  assert.equal(w.end, 20);
  assert.ok(w.first <= 10);
});

test("where rows differ, those in sight are drawn, and heights add up as well", () => {
  const heightOf = (i: number): number => (i % 10 === 0 ? 120 : 44);
  for (const count of [0, 1, 5, 20, 1000]) {
    let whole = 0;
    for (let i = 0; i < count; i++) whole += heightOf(i);
    for (const top of [-50, 0, 13, 440, 20_000, 1e9]) {
      const w = windowOfRows(top, 440, heightOf, count, 3);
      let drawn = 0;
      for (let i = w.first; i < w.end; i++) drawn += heightOf(i);
      assert.equal(w.above + drawn + w.below, whole);
      const seen = Math.min(Math.max(top, 0), Math.max(whole - 440, 0));
      assert.ok(w.above <= seen && w.above + drawn >= Math.min(seen + 440, whole));
      assert.ok(w.end - w.first <= 18);
    }
  }
});
