import assert from "node:assert/strict";
import { test } from "node:test";
import { wholeJob, type JobAsSent } from "../src/job_shape";
import { doneOf, inOrder, passes, resultOf, resultText, type JobSort } from "../src/jobs_list";
import type { Job } from "../src/types";

function job(id: number, more: Partial<JobAsSent>): Job {
  return wholeJob({ id, name: `job ${id}`, ...more });
}

const jobs = [
  job(1, { state: "finished", name: "zebra", progress: { step: 5, steps: 5, held_out_metric: 0.9 } }),
  job(2, { state: "running", name: "net 10", progress: { step: 1, steps: 5, metric: 0.5 } }),
  job(3, { state: "failed", name: "net 9", host: "Ann" }),
  job(4, { state: "waiting", name: "apes", spec: { data: "fashion-mnist" } }),
  job(5, { state: "running", name: "bees", kind: "search" }),
  job(6, { state: "stopped", name: "cats", kind: "agent" }),
];
const order = (sort: JobSort): number[] => inOrder(jobs, sort).map((one) => one.id);

test("what runs stands first, then what waits, then what has ended, each the newest first", () => {
  assert.deepEqual(order("active"), [5, 2, 4, 6, 3, 1]);
});

test("jobs are sorted by age, name, progress and result", () => {
  assert.deepEqual(order("newest"), [6, 5, 4, 3, 2, 1]);
  assert.deepEqual(order("oldest"), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(order("name"), [4, 5, 6, 3, 2, 1]); // 9 before 10
  assert.deepEqual(order("progress").slice(0, 2), [1, 2]);
  assert.deepEqual(order("result"), [1, 2, 6, 5, 4, 3]); // those without one last
});

test("of two errors the smaller one is the better result", () => {
  const rmse = (id: number, held_out_metric: number): Job =>
    job(id, { progress: { step: 5, steps: 5, metric_name: "rmse", held_out_metric } });
  const all = [rmse(1, 2.5), rmse(2, 0.5), ...jobs.slice(3, 4)];
  assert.deepEqual(
    inOrder(all, "result").map((one) => one.id),
    [2, 1, 4],
  );
});

test("jobs are found by state, by kind, and by all words that are looked for", () => {
  const found = (text: string, state = "", kind = ""): number[] =>
    jobs.filter((one) => passes(one, { text, state, kind })).map((one) => one.id);
  assert.deepEqual(found(""), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(found("NET"), [2, 3]);
  assert.deepEqual(found("net ann"), [3]);
  assert.deepEqual(found("fashion"), [4]);
  assert.deepEqual(found("#4"), [4]);
  assert.deepEqual(found("", "running"), [2, 5]);
  assert.deepEqual(found("", "running", "train"), [2]);
  assert.deepEqual(found("", "", "agent"), [6]);
  assert.deepEqual(found("bees", "failed"), []);
});

test("a search is in the list with its test's score, or with what it has until then", () => {
  const search = { phase: "tries", best: 2, best_score: 0.8, metric: "accuracy", share: 0.25 };
  const running = job(7, { kind: "search", state: "running", search } as unknown as JobAsSent);
  assert.equal(resultText(running), "0.8000 validation accuracy");
  assert.equal(doneOf(running), 0.25);
  const ended = { ...search, phase: "ended", test_score: 0.7 };
  const finished = job(7, { kind: "search", state: "finished", search: ended } as unknown as JobAsSent);
  assert.equal(resultText(finished), "0.7000 test accuracy");
  assert.equal(resultOf(finished), 0.7);
});
