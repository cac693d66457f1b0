import assert from "node:assert/strict";
import { test } from "node:test";
import { wholeJob } from "../src/job_shape";

test("a job that has never run has all that pages ask for", () => {
  const job = wholeJob({ id: 3, name: "a", state: "stopped" });
  assert.equal(job.name, "a");
  assert.equal(job.progress.steps, 0);
  assert.equal(job.progress.loss, null);
  assert.deepEqual(job.files, { model: false, onnx: false, events: false });
  assert.deepEqual(job.spec, {});
});

test("what was sent is kept", () => {
  const job = wholeJob({ id: 3, progress: { step: 5, loss: 0.5 }, files: { model: true, onnx: false, events: true } });
  assert.equal(job.progress.step, 5);
  assert.equal(job.progress.loss, 0.5);
  assert.equal(job.progress.again, 0);
  assert.ok(job.files.model && job.files.events);
});
