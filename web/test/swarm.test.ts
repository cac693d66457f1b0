import assert from "node:assert/strict";
import { test } from "node:test";
import {
  flowsOf,
  fromEachOther,
  gridAt,
  gridOf,
  hereText,
  inOrder,
  isSwarm,
  leftOutText,
  shades,
  swarmText,
} from "../src/swarm";
import type { Swarm, SwarmMember } from "../src/types";

function member(id: number, here = 4): SwarmMember {
  return {
    id,
    name: `m${id}`,
    here,
    cells: "9999",
    from_server: 0,
    from_peers: 0,
    to_peers: 0,
    blamed: 0,
  };
}

function swarm(members: SwarmMember[], more: Partial<Swarm> = {}): Swarm {
  return {
    set: "mnist",
    chunks: 4,
    bytes: 4 << 20,
    sent: 4 << 20,
    copies: 1,
    received: 16 << 20,
    members,
    flows: [],
    ...more,
  };
}

test("one member, or none with data, is no swarm, and a sentence says why", () => {
  assert.equal(isSwarm(swarm([])), false);
  assert.equal(swarmText(swarm([])), "No worker fetches data from this server now.");
  assert.equal(isSwarm(swarm([member(1)])), false);
  assert.match(swarmText(swarm([member(1)])), /^One worker is here\./);
  assert.equal(isSwarm(swarm([member(1, 0), member(2, 0)])), false);
  assert.equal(swarmText(swarm([member(1, 0), member(2, 0)])), "No worker has any of the data yet.");
  assert.equal(isSwarm(swarm([member(1, 0), member(2, 1)])), true);
});

test("the sentence says what the server sent and what came from each other", () => {
  const two = [member(1), member(2)];
  assert.equal(
    swarmText(swarm(two)),
    "The server sent 4.0 MB (1.0 copy), members received 16 MB, 75% of it from each other.",
  );
  assert.match(swarmText(swarm(two, { copies: 12.3 })), /\(12 copies\)/);
  assert.match(swarmText(swarm(two, { sent: 0, copies: 0, received: 0 })), /^All members had their data/);
});

test("reports that come late never make a share below nothing", () => {
  assert.equal(fromEachOther(swarm([], { sent: 10, received: 4 })), 0);
  assert.equal(fromEachOther(swarm([], { sent: 0, received: 0 })), 0);
  assert.equal(fromEachOther(swarm([], { sent: 0, received: 8 })), 1);
});

test("members stay in the order in which they came", () => {
  const sent = [member(9), member(2), member(10)];
  assert.deepEqual(
    inOrder(sent).map((one) => one.id),
    [2, 9, 10],
  );
  assert.equal(sent[0]?.id, 9);
});

test("what a member has is a share of all chunks, also where there are none", () => {
  assert.equal(hereText(swarm([]), member(1, 3)), "75%");
  assert.equal(hereText(swarm([], { chunks: 0 }), member(1, 0)), "0%");
});

test("cells are shades from nothing to all; what is no digit is nothing", () => {
  assert.deepEqual(shades("09"), [0, 1]);
  assert.deepEqual(shades(""), []);
  assert.deepEqual(shades("x3"), [0, 1 / 3]);
});

test("flows have a row for who receives and a column for who sends, the server's first", () => {
  const flows = [
    { from: 0, to: 5, bytes: 100 },
    { from: 5, to: 7, bytes: 25 },
    { from: 3, to: 7, bytes: 50 }, // has left
    { from: 5, to: 3, bytes: 50 },
    { from: 7, to: 5, bytes: 0 },
  ];
  assert.deepEqual(flowsOf(swarm([member(7), member(5)], { flows })), [
    { row: 0, column: 0, bytes: 100, weight: 1 },
    { row: 1, column: 1, bytes: 25, weight: 0.5 },
  ]);
  assert.deepEqual(flowsOf(swarm([])), []);
});

test("a picture that leaves flows out says so", () => {
  assert.equal(leftOutText(swarm([])), "");
  const flows = Array.from({ length: 2000 }, () => ({ from: 0, to: 1, bytes: 1 }));
  assert.equal(leftOutText(swarm([], { flows })), "Only the 2,000 largest flows are shown.");
});

test("squares fit into the width, with numbers where there is room", () => {
  for (const members of [1, 2, 12, 40, 200])
    for (const width of [280, 330, 420]) {
      const grid = gridOf(members, width);
      assert.ok(grid.cell > 0 && grid.label + (members + 1) * grid.cell <= width + 1e-6);
    }
  assert.deepEqual(gridOf(2, 420), { cell: 26, label: 24 });
  assert.equal(gridOf(200, 330).label, 0);
});

test("a point in the squares is found again, and none beside them", () => {
  const grid = { cell: 10, label: 20 };
  assert.deepEqual(gridAt(grid, 2, 21, 21), [0, 0]);
  assert.deepEqual(gridAt(grid, 2, 49, 39), [1, 2]);
  assert.equal(gridAt(grid, 2, 50, 39), null);
  assert.equal(gridAt(grid, 2, 49, 40), null);
  assert.equal(gridAt(grid, 2, 5, 25), null);
});
