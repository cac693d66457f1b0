import assert from "node:assert/strict";
import { test } from "node:test";
import { heldOutCurve, isThere, namesOf, trainCurve, type Compared } from "../src/compared";
import { wholeJob } from "../src/job_shape";
import { routeOf } from "../src/routes";

const one: Compared = {
  job: wholeJob({ id: 3, rounds: 10 }),
  history: {
    rounds: [
      [5, 100, 2, 0.1, 50],
      [10, 104, 2, null, 50],
      [20, 110, 2, 0.1, 50],
    ],
    epochs: [
      { epoch: 1, step: 10, time: 105, loss: 2, metric: 0.1, held_out_loss: 1.5, held_out_metric: null },
      { epoch: 2, step: 20, time: 112, loss: 2, metric: 0.1, held_out_loss: 1.2, held_out_metric: null },
    ],
  },
};

test("trainings are compared by round, by epoch, and by the time since each began", () => {
  assert.deepEqual(trainCurve(one, "round", "loss"), [
    [5, 10, 20],
    [2, 2, 2],
  ]);
  assert.deepEqual(trainCurve(one, "epoch", "loss")[0], [0.5, 1, 2]);
  assert.deepEqual(trainCurve(one, "time", "metric")[0], [0, 4, 10]);
  assert.equal(trainCurve(one, "round", "metric")[1][1], null);
  assert.deepEqual(heldOutCurve(one, "time", "loss"), [
    [5, 12],
    [1.5, 1.2],
  ]);
});

test("a curve without a value is not there", () => {
  assert.ok(isThere(heldOutCurve(one, "epoch", "loss")));
  assert.ok(!isThere(heldOutCurve(one, "epoch", "metric")));
});

test("names that several have get their numbers", () => {
  const named = [
    { id: 1, name: "net" },
    { id: 2, name: "net" },
    { id: 3, name: "other" },
  ];
  assert.deepEqual(namesOf(named), ["net (#1)", "net (#2)", "other"]);
});

test("which jobs are compared stands in the address", () => {
  assert.deepEqual(routeOf("/compare", "?jobs=3,5,3,x,0,-1,7"), { page: "compare", jobs: [3, 5, 7] });
  assert.deepEqual(routeOf("/compare"), { page: "compare", jobs: [] });
  assert.equal(routeOf("/compare/3").page, "missing");
  const many = routeOf("/compare", `?jobs=${Array.from({ length: 20 }, (_, i) => i + 1).join(",")}`);
  assert.ok(many.page === "compare" && many.jobs.length === 8);
});
