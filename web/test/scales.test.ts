import assert from "node:assert/strict";
import { test } from "node:test";
import { countScale, logScale, nextValue, positions, powerScale, readNumber } from "../src/scales";

const scales = { rate: logScale(0.00001, 10), epochs: countScale(1, 1000), batch: powerScale(1, 8192) };

test("the ends of a slider are the ends of its range", () => {
  for (const [name, scale] of Object.entries(scales)) {
    assert.equal(scale.toValue(0), scale.min, name);
    assert.equal(scale.toValue(positions), scale.max, name);
    assert.equal(scale.toPosition(scale.min), 0, name);
    assert.equal(scale.toPosition(scale.max), positions, name);
    assert.equal(scale.toPosition(scale.max * 10), positions, name);
  }
});

test("values grow with the position", () => {
  for (const [name, scale] of Object.entries(scales)) {
    let before = -Infinity;
    for (let position = 0; position <= positions; position++) {
      const value = scale.toValue(position);
      assert.ok(value >= before, `${name} at ${position}`);
      if (scale.whole) assert.ok(Number.isInteger(value), `${name} at ${position}`);
      before = value;
    }
  }
});

test("a value that the slider gave leads back to itself", () => {
  for (const [name, scale] of Object.entries(scales)) {
    for (let position = 0; position <= positions; position += 37) {
      const value = scale.toValue(position);
      assert.equal(scale.toValue(scale.toPosition(value)), value, `${name} ${value}`);
    }
  }
});

test("every small number of epochs can be reached; batches are powers of two", () => {
  const reached = new Set(Array.from({ length: positions + 1 }, (_, p) => scales.epochs.toValue(p)));
  for (let epochs = 1; epochs <= 20; epochs++) assert.ok(reached.has(epochs), String(epochs));
  for (let p = 0; p <= positions; p += 10) assert.ok(Number.isInteger(Math.log2(scales.batch.toValue(p))));
});

test("what is typed is taken as it is, or refused with a reason", () => {
  assert.equal(readNumber("0.0234", scales.rate), 0.0234);
  assert.equal(readNumber("100", scales.batch), 100);
  for (const bad of ["", "abc", "1.5", "0", "9000", "Infinity"])
    assert.equal(typeof readNumber(bad, scales.batch), "string", bad);
});

test("arrow keys always get further, until the end", () => {
  for (const [name, scale] of Object.entries(scales)) {
    let value = scale.min;
    let steps = 0;
    for (let next = nextValue(scale, value, 1); next !== value; next = nextValue(scale, value, 1)) {
      assert.ok(next > value && ++steps <= positions, name);
      value = next;
    }
    assert.equal(value, scale.max, name);
  }
  assert.equal(nextValue(scales.batch, 100, 1), 128);
  assert.equal(nextValue(scales.batch, 100, -1), 64);
  assert.equal(nextValue(scales.epochs, 6, 1), 7);
  assert.equal(nextValue(scales.epochs, 6, -1), 5);
  assert.equal(nextValue(scales.epochs, 1, -1), 1);
});
