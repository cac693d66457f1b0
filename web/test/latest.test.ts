import assert from "node:assert/strict";
import { test } from "node:test";
import { Latest } from "../src/latest";

const long = 1_000_000; // ms: nothing that is put off so far comes by itself

// A server that answers when it is told to.
function asker() {
  const answers: (() => void)[] = [];
  const used: number[] = [];
  const latest = new Latest(long, async (signal) => {
    const number = answers.length;
    await new Promise<void>((done) => answers.push(done));
    if (!signal.aborted) used.push(number);
  });
  return { latest, answers, used };
}

const turn = (): Promise<void> => new Promise((done) => setImmediate(done));

test("nothing asked is settled", async () => {
  const { latest, answers } = asker();
  await latest.settled();
  assert.equal(answers.length, 0);
});

test("what was put off is asked when somebody waits for it", async () => {
  const { latest, answers, used } = asker();
  latest.soon();
  latest.soon();
  await turn();
  assert.equal(answers.length, 0);
  const waiting = latest.settled();
  assert.equal(answers.length, 1);
  answers[0]?.();
  await waiting;
  assert.deepEqual(used, [0]);
});

test("only the last answer is used, and waited for", async () => {
  const { latest, answers, used } = asker();
  latest.now();
  let isSettled = false;
  const waiting = latest.settled().then(() => (isSettled = true));
  latest.now();
  answers[0]?.();
  await turn();
  assert.equal(isSettled, false);
  answers[1]?.();
  await waiting;
  assert.deepEqual(used, [1]);
});

test("what is dropped is neither asked nor used", async () => {
  const { latest, answers, used } = asker();
  latest.now();
  latest.soon();
  latest.drop();
  answers[0]?.();
  await latest.settled();
  assert.equal(answers.length, 1);
  assert.deepEqual(used, []);
});

test("a question comes by itself after its time", async () => {
  let asked = 0;
  const latest = new Latest(1, async () => {
    asked++;
  });
  latest.soon();
  await new Promise((done) => setTimeout(done, 50));
  assert.equal(asked, 1);
});
