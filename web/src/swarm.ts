// swarm.ts: how a job's data gets to its workers, as numbers, words and places in a picture. Pure. How much
// came from whom is as members report it.

import { bytes, count, percent } from "./format";
import type { Swarm, SwarmMember } from "./types";

const flowsMax = 2000; // the server tells no more

// Where one member or none has data there is nobody to get it from but the server.
export function isSwarm(swarm: Swarm): boolean {
  return swarm.members.length > 1 && swarm.members.some((member) => member.here > 0);
}

// In the order in which they came, so that rows stay where they are.
export function inOrder(members: SwarmMember[]): SwarmMember[] {
  return members.slice().sort((a, b) => a.id - b.id);
}

// The part of what members received that did not come from the server.
export function fromEachOther(swarm: Swarm): number {
  return swarm.received > 0 ? Math.max(swarm.received - swarm.sent, 0) / swarm.received : 0;
}

export function swarmText(swarm: Swarm): string {
  if (swarm.members.length === 0) return "No worker fetches data from this server now.";
  if (!isSwarm(swarm) && swarm.members.length === 1)
    return "One worker is here. It gets its data from the server; from two on they get it from each other.";
  if (!isSwarm(swarm)) return "No worker has any of the data yet.";
  if (swarm.sent + swarm.received === 0) return "All members had their data already: nothing had to be sent.";
  const copies = swarm.copies.toFixed(swarm.copies < 10 ? 1 : 0);
  const sent = `The server sent ${bytes(swarm.sent)} (${copies} ${copies === "1.0" ? "copy" : "copies"})`;
  const share = percent(fromEachOther(swarm));
  return `${sent}, members received ${bytes(swarm.received)}, ${share} of it from each other.`;
}

export function hereText(swarm: Swarm, member: SwarmMember): string {
  return swarm.chunks > 0 ? percent(member.here / swarm.chunks) : "0%";
}

// How much of each part of the set a member has: 0 to 1.
export function shades(cells: string): number[] {
  return [...cells].map((digit) => Math.min(Math.max(Number(digit) || 0, 0), 9) / 9);
}

// What came to the member of a row from the one of a column: 0 is the server, i + 1 is member i.
export interface Flow {
  row: number;
  column: number;
  bytes: number;
  weight: number; // above 0, 1 for the largest
}

// Those between members that are here. The root keeps small ones visible beside large ones.
export function flowsOf(swarm: Swarm): Flow[] {
  const places = new Map(inOrder(swarm.members).map((member, i) => [member.id, i]));
  const most = swarm.flows.reduce((largest, flow) => Math.max(largest, flow.bytes), 0);
  const flows: Flow[] = [];
  for (const flow of swarm.flows) {
    const row = places.get(flow.to);
    const sender = places.get(flow.from);
    const column = flow.from === 0 ? 0 : sender === undefined ? undefined : sender + 1;
    if (row === undefined || column === undefined || flow.bytes <= 0) continue;
    flows.push({ row, column, bytes: flow.bytes, weight: Math.sqrt(flow.bytes / most) });
  }
  return flows;
}

// What the picture leaves out; empty when that is nothing.
export function leftOutText(swarm: Swarm): string {
  return swarm.flows.length < flowsMax ? "" : `Only the ${count(flowsMax)} largest flows are shown.`;
}

export interface Grid {
  cell: number; // pixels
  label: number; // pixels for the numbers at the left and at the top; 0: there is no room for them
}

const cellMax = 26;
const cellLabelled = 15; // with smaller ones numbers would touch each other
const labelWidth = 24;

// The squares of so many members and the server in so many pixels.
export function gridOf(members: number, width: number): Grid {
  const columns = members + 1;
  const labelled = Math.min((width - labelWidth) / columns, cellMax);
  if (labelled >= cellLabelled) return { cell: Math.floor(labelled), label: labelWidth };
  return { cell: Math.min(Math.max(width / columns, 0), cellLabelled), label: 0 };
}

// Row and column at a point of the grid; null outside.
export function gridAt(grid: Grid, members: number, x: number, y: number): [number, number] | null {
  const row = Math.floor((y - grid.label) / grid.cell);
  const column = Math.floor((x - grid.label) / grid.cell);
  return row >= 0 && row < members && column >= 0 && column <= members ? [row, column] : null;
}
