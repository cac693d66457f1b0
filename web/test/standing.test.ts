import assert from "node:assert/strict";
import { test } from "node:test";
import { allRejected, auditsText, isGuarded, rejectedText, standingRank, standingText } from "../src/standing";
import type { JobWorker } from "../src/types";

const plain: JobWorker = {
  name: "anna",
  here: true,
  units: 1,
  samples: 1,
  share: 1,
  seconds: 1,
  samples_per_s: 1,
  lag_s: 0,
};

test("a worker of a job that nobody guards has nothing to show", () => {
  assert.equal(standingText(plain), "");
  assert.equal(auditsText(plain), "");
  assert.equal(rejectedText(plain), "");
  assert.equal(isGuarded([]), false);
  assert.equal(isGuarded([plain]), false);
  assert.equal(allRejected([plain]), null);
});

test("standing, audits and rejected updates are told", () => {
  const proven: JobWorker = { ...plain, standing: "proven", audits_agreed: 1234, audits_wrong: 0, rejected: 0 };
  assert.equal(isGuarded([plain, proven]), true);
  assert.equal(standingText(proven), "proven");
  assert.equal(auditsText(proven), "1,234");
  assert.equal(rejectedText(proven), "0");
  const banned: JobWorker = { ...plain, standing: "banned", audits_agreed: 4, audits_wrong: 1, rejected: 2 };
  assert.equal(auditsText(banned), "4, 1 wrong");
  assert.equal(rejectedText(banned), "2");
  assert.equal(allRejected([plain, proven, banned]), 2);
});

test("sorted by standing the banned come first and those without one last", () => {
  const of = (standing: JobWorker["standing"]): number =>
    standingRank(standing === undefined ? plain : { ...plain, standing });
  assert.ok(of("banned") < of("unproven") && of("unproven") < of("proven") && of("proven") < of(undefined));
});
