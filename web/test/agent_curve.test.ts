import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addAgentPoints,
  curvesOf,
  nearestCheckpoint,
  nearestSteps,
  placeOf,
  stepsMark,
  thinned,
  timeMark,
} from "../src/agent_curve";
import type { AgentPoint } from "../src/agent_types";

function point(steps: number, more: Partial<AgentPoint> = {}): AgentPoint {
  return {
    steps,
    seconds: steps / 100,
    return_mean: steps / 10,
    return_deviation: 5,
    steps_per_second: 100,
    lag: 0,
    ...more,
  };
}
const stepsOf = (points: AgentPoint[]): number[] => points.map((one) => one.steps);

test("points that are known already are not added again", () => {
  const all = addAgentPoints([point(100), point(200)], [point(200, { score: 7 }), point(300)]);
  assert.deepEqual(stepsOf(all), [100, 200, 300]);
  assert.equal(all[1]?.score, 7, "a score that came later is lost");
});

test("what is played again after a server was killed takes the place of what was", () => {
  const all = addAgentPoints([point(100), point(200), point(300)], [point(150, { return_mean: 1 })]);
  assert.deepEqual(stepsOf(all), [100, 150]);
});

test("curves have a mean, its band, and scores where there are any", () => {
  const points = [point(100, { return_mean: null, return_deviation: null }), point(200, { score: 30 })];
  const curves = curvesOf(points, "steps");
  assert.deepEqual(curves.xs, [100, 200]);
  assert.deepEqual(curves.mean, [null, 20]);
  assert.deepEqual(curves.above, [null, 25]);
  assert.deepEqual(curves.below, [null, 15]);
  assert.deepEqual(curves.scores, [null, 30]);
  assert.deepEqual(curvesOf(points, "seconds").xs, [1, 2]);
});

test("thousands of points are thinned out; scores and the last one stay", () => {
  const points = Array.from({ length: 1000 }, (_, i) => point(i, i === 501 ? { score: 1 } : {}));
  const fewer = thinned(points, 100);
  assert.ok(fewer.length <= 103);
  assert.ok(stepsOf(fewer).includes(501));
  assert.equal(fewer[fewer.length - 1]?.steps, 999);
  assert.equal(thinned(points, 1000), points);
});

test("a checkpoint is found by its place, on either axis", () => {
  const points = [point(100), point(200, { seconds: 4 })];
  const checkpoints = [50, 150, 200].map((steps) => ({ steps, bytes: 1, time: 1 }));
  assert.equal(placeOf(150, points, "steps"), 150);
  assert.equal(placeOf(150, points, "seconds"), 2.5);
  assert.equal(placeOf(50, points, "seconds"), 0.5);
  assert.equal(placeOf(900, points, "seconds"), 4);
  assert.equal(nearestCheckpoint(checkpoints, points, "steps", 140), 1);
  assert.equal(nearestCheckpoint(checkpoints, points, "seconds", 3.9), 2);
  assert.equal(nearestCheckpoint([], points, "steps", 1), -1);
  assert.equal(nearestSteps(checkpoints, 150), 150);
  assert.equal(nearestSteps(checkpoints, 170), 150);
  assert.equal(nearestSteps([], 170), null);
});

test("marks at the axes are short and exact", () => {
  assert.deepEqual([0, 950, 12_500, 1_250_000].map(stepsMark), ["0", "950", "12.5k", "1.25M"]);
  assert.deepEqual([0.5, 45, 90, 3900].map(timeMark), ["0.5 s", "45 s", "1:30", "1:05:00"]);
});
