import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { goodName, nameBytesMax, rules, shuffles, trainCommand, usualTarget, wires } from "../src/spec";

interface Described {
  enum?: string[];
  examples?: string[];
  maxLength?: number;
}

// What the server takes, as it is written down; a test of the server's compares that with the server.
function described(field: string): Described {
  const text = readFileSync("../docs/openapi.json", "utf8");
  const api = JSON.parse(text) as {
    components: { schemas: { JobSpec: { properties: Record<string, Described> } } };
  };
  return api.components.schemas.JobSpec.properties[field] ?? {};
}

test("what can be chosen is what the server takes", () => {
  assert.deepEqual(
    wires.map(([word]) => word),
    described("wire").enum,
  );
  assert.deepEqual(
    rules.map(([word]) => word),
    described("rule").examples,
  );
  assert.deepEqual(
    shuffles.map(([word]) => word),
    ["", ...(described("shuffle").enum ?? [])],
  );
  assert.equal(nameBytesMax, described("name").maxLength);
});

test("a proposed name is one that the server takes", () => {
  assert.equal(goodName("encoder-decoder on toy:reverse"), "encoder-decoder on toy-reverse");
  assert.equal(goodName("a/b\\c*d?e\"f<g>h|i%j#k\n"), "a-b-c-d-e-f-g-h-i-j-k-");
  assert.equal(goodName(" .hidden "), "hidden");
  assert.equal(goodName("..."), "job");
  assert.equal(goodName("x".repeat(90)).length, nameBytesMax);
  assert.equal(new TextEncoder().encode(goodName(`x${"鱼".repeat(40)}`)).length, 64);
  assert.equal(goodName("🐟".repeat(40)), "🐟".repeat(16));
});

test("the target is the one that the table was made for, else the last column", () => {
  const columns = [
    { name: "a", kind: "number" },
    { name: "b", kind: "class" },
  ];
  assert.equal(usualTarget({ columns, target: "a" }), "a");
  assert.equal(usualTarget({ columns }), "b");
  assert.equal(usualTarget({ columns: null }), null);
});

test("the command for one machine has all that decides the result, and is missing where none gives it", () => {
  const spec = { data: "my table", valid: 0.1, epochs: 3, batch: 8, mode: "sync", wire: "f32" };
  assert.equal(
    trainCommand({ name: "a job", spec: { ...spec, target: "kind", rate: 0.5, seed: 7 } }),
    "shoal train a-job.net --data 'my table' --target kind --valid 0.1 --epochs 3 --batch 8 --rate 0.5 --seed 7",
  );
  assert.doesNotMatch(trainCommand({ name: "a", spec: { ...spec, valid: 0 } }) ?? "", /--valid/);
  assert.notEqual(trainCommand({ name: "a", spec: { ...spec, rule: "mean", guard: true } }), null);
  for (const change of [
    { mode: "async" },
    { mode: "stale:4" },
    { mode: "local:8" },
    { wire: "int8" },
    { rule: "median" },
  ])
    assert.equal(trainCommand({ name: "a", spec: { ...spec, ...change } }), null);
});
