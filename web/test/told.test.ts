import assert from "node:assert/strict";
import { test } from "node:test";
import { Told } from "../src/told";

interface Job {
  state: string;
  spec?: string;
}

test("an answer counts whole when nothing was told on its way", async () => {
  const told = new Told<Job>();
  told.tell({ state: "waiting", spec: "old" });
  assert.deepEqual(await told.answer(Promise.resolve({ state: "running" })), { state: "running" });
});

test("an answer that comes after something newer does not take its place", async () => {
  const told = new Told<Job>();
  let arrive: (job: Job) => void = () => undefined;
  const answer = told.answer(new Promise((done) => (arrive = done)));
  told.tell({ state: "running" });
  told.tell({ state: "stopped" });
  arrive({ state: "running", spec: "whole" });
  assert.deepEqual(await answer, { state: "stopped", spec: "whole" });
});

test("an answer that fails fails for whoever asked", async () => {
  await assert.rejects(new Told<Job>().answer(Promise.reject(new Error("away"))), /away/);
});
