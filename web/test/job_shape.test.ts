import assert from "node:assert/strict";
import { test } from "node:test";
import { furtherProgress, wholeJob } from "../src/job_shape";

test("a job that has never run has all that pages ask for", () => {
  const job = wholeJob({ id: 3, name: "a", state: "stopped" });
  assert.equal(job.name, "a");
  assert.equal(job.progress.steps, 0);
  assert.equal(job.progress.loss, null);
  assert.deepEqual(job.files, { model: false, onnx: false, events: false });
  assert.deepEqual(job.spec, {});
});

test("what was sent is kept", () => {
  const job = wholeJob({
    id: 3,
    progress: { step: 5, loss: 0.5 },
    files: { model: true, onnx: false, events: true },
  });
  assert.equal(job.progress.step, 5);
  assert.equal(job.progress.loss, 0.5);
  assert.equal(job.progress.again, 0);
  assert.ok(job.files.model && job.files.events);
});

test("what the model's text says stands in for what the spec does not", () => {
  const job = wholeJob({ id: 3, spec: { rate: 0.5 }, recipe: { rate: 0.02, seed: 7, optimizer: "adam" } });
  assert.equal(job.spec.rate, 0.5);
  assert.equal(job.spec.seed, 7);
  assert.equal(job.spec.optimizer, "adam");
});

test("without a word on files there is a model after the first epoch", () => {
  assert.equal(wholeJob({ id: 3, progress: { epoch: 0 } }).files.model, false);
  assert.equal(wholeJob({ id: 3, progress: { epoch: 1 } }).files.model, true);
});

test("a job that goes on stays where it was until it says how far it is", () => {
  const known = wholeJob({ id: 3, progress: { step: 5, steps: 9, loss: 0.5, eta_s: 4 } }).progress;
  const silent = wholeJob({ id: 3, progress: { step: 0, steps: 12 } }).progress;
  const further = wholeJob({ id: 3, progress: { step: 6, steps: 12 } }).progress;
  assert.equal(furtherProgress(null, silent).step, 0);
  assert.deepEqual(furtherProgress(known, silent), { ...known, steps: 12, eta_s: null });
  assert.equal(furtherProgress(known, further), further);
});
