import assert from "node:assert/strict";
import { test } from "node:test";
import { between, endText, fitView, returnsOf, returnText, spreadText } from "../src/agent_picture";
import type { Ink, Picture, Shape } from "../src/agent_types";

function disc(ink: Ink, x: number, y: number, width = 1): Shape {
  return { form: "disc", ink, width, points: [x, y] };
}

function picture(...shapes: Shape[]): Picture {
  return { view: [0, 100, 0, 50], shapes };
}

test("a view is as large as it goes, in the middle, and the right way up", () => {
  const place = (view: Picture["view"], width: number, height: number, x: number, y: number): number[] => {
    const { scale, dx, dy } = fitView(view, width, height);
    return [dx + x * scale, dy - y * scale];
  };
  // As wide as the canvas: room is left above and below.
  assert.deepEqual(place([0, 100, 0, 50], 200, 300, 0, 0), [0, 200]);
  assert.deepEqual(place([0, 100, 0, 50], 200, 300, 100, 50), [200, 100]);
  // As high as the canvas.
  assert.deepEqual(place([-1, 1, -1, 1], 300, 100, 0, 0), [150, 50]);
  assert.deepEqual(place([-1, 1, -1, 1], 300, 100, 1, 1), [200, 0]);
});

test("what moves is between where it was and where it will be", () => {
  const a = picture(disc("body", 10, 10, 2));
  const b = picture(disc("body", 14, 8, 4));
  assert.deepEqual(between(a, b, 0.5), [disc("body", 12, 9, 3)]);
  assert.deepEqual(between(a, b, 0), a.shapes);
  assert.deepEqual(a.shapes[0]?.points, [10, 10], "the picture itself was changed");
});

test("a flame that comes and goes does not hold up what lies around it", () => {
  const flame: Shape = { form: "area", ink: "accent", points: [1, 1, 2, 2, 3, 3] };
  const a = picture(disc("line", 0, 0), disc("body", 10, 10));
  const b = picture(disc("line", 0, 0), flame, disc("body", 12, 10));
  assert.deepEqual(between(a, b, 0.5), [disc("line", 0, 0), disc("body", 11, 10)]);
  assert.deepEqual(between(b, a, 0.5), [disc("line", 0, 0), flame, disc("body", 11, 10)]);
});

test("what jumps stays until it is elsewhere", () => {
  const a = picture(disc("goal", 10, 10), disc("body", 50, 20));
  const b = picture(disc("goal", 90, 40), disc("body", 52, 20));
  assert.deepEqual(between(a, b, 0.5), [disc("goal", 10, 10), disc("body", 51, 20)]);
});

test("returns add up, one more than there are rewards", () => {
  assert.deepEqual(returnsOf([1, 1, -3]), [0, 1, 2, -1]);
  assert.deepEqual(returnsOf([]), [0]);
});

test("returns and their spread have the digits that say something", () => {
  assert.deepEqual([500, -110, 12345, 0].map(returnText), ["500", "-110", "12,345", "0"]);
  assert.deepEqual([223.87, -12.345, 0.6123, null].map(returnText), ["224", "-12.3", "0.61", "–"]);
  assert.equal(spreadText(58.13, 38.82), "58 ± 39");
  assert.equal(spreadText(500, 0), "500 ± 0");
  assert.equal(spreadText(7, 2), "7 ± 2");
  assert.equal(spreadText(32.31, 8.04), "32.3 ± 8.0");
  assert.equal(spreadText(-12.34, 2.345), "-12.3 ± 2.3");
  assert.equal(spreadText(0.61, 0.05), "0.61 ± 0.05");
  assert.equal(spreadText(null, null), "–");
  assert.equal(spreadText(7, null), "7");
});

test("it is told how an episode ended", () => {
  assert.equal(
    endText({ end: "truncated", return: 500, rewards: Array<number>(500).fill(1) }),
    "Out of time after 500 steps, return 500",
  );
  assert.equal(endText({ end: "terminated", return: 1, rewards: [1] }), "Ended after 1 step, return 1");
});
