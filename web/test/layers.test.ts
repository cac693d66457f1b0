import assert from "node:assert/strict";
import { test } from "node:test";
import { layOut, type Layout } from "../src/layers";

const of = (...inputs: number[][]): Layout => layOut(inputs.map((list) => ({ inputs: list })));

// No two layers in one place; every layer below those it needs; ways meet no layer.
function check(layout: Layout): void {
  const taken = new Set(layout.places.map((place) => `${place.row},${place.column}`));
  assert.equal(taken.size, layout.places.length);
  const lanes = new Set<string>();
  for (const edge of layout.edges) {
    const from = layout.places[edge.from]!;
    const to = layout.places[edge.to]!;
    assert.ok(from.row < to.row);
    for (let row = from.row + 1; row < to.row; row++) {
      if (edge.way.kind === "lane") {
        assert.ok(!lanes.has(`${row},${edge.way.lane}`), "two ways in one lane");
        lanes.add(`${row},${edge.way.lane}`);
      } else {
        const column = edge.way.kind === "column" ? edge.way.column : to.column;
        assert.ok(!taken.has(`${row},${column}`), `the way ${edge.from} to ${edge.to} runs through a layer`);
      }
    }
  }
}

test("a plain network is one column", () => {
  const layout = of([], [0], [1], [2]);
  check(layout);
  assert.deepEqual([layout.rows, layout.columns, layout.lanes], [4, 1, 0]);
  assert.ok(layout.edges.every((edge) => edge.way.kind === "straight"));
});

test("a sum with an earlier layer gets a lane", () => {
  const layout = of([], [0], [1], [2, 0]);
  check(layout);
  assert.deepEqual([layout.columns, layout.lanes], [1, 1]);
});

test("a branch gets a column of its own, and its way back goes down there", () => {
  // 0 -> 1 -> 2 -> 3 -> 6 and 0 -> 4 -> 5 -> 6
  const layout = of([], [0], [1], [2], [0], [4], [3, 5]);
  check(layout);
  assert.equal(layout.columns, 2);
  assert.equal(layout.places[6]!.column, 0);
  assert.equal(layout.places[4]!.column, layout.places[5]!.column);
  assert.equal(layout.lanes, 0);
});

test("nested and neighbouring sums share no lane where they overlap", () => {
  const layout = of([], [0], [1], [2, 1], [3], [4, 0], [5], [6, 5]);
  check(layout);
});

test("inputs that cannot be are left out", () => {
  const layout = of([], [0, 7, -1], [2]);
  check(layout);
  assert.equal(layout.edges.length, 1);
});

test("networks drawn at random are laid out without a collision", () => {
  let seed = 1;
  const random = (n: number): number => (seed = (seed * 48271) % 2147483647) % n;
  for (let round = 0; round < 300; round++) {
    const inputs: number[][] = [[]];
    const count = 2 + random(25);
    for (let i = 1; i < count; i++) {
      const list = new Set([random(4) ? i - 1 : random(i)]);
      if (random(3) === 0) list.add(random(i));
      inputs.push([...list]);
    }
    check(of(...inputs));
  }
});
