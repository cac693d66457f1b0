// agent_picture.ts: episodes as something to watch: where a picture goes on a canvas, what lies between two
// pictures, what is said of a moment. Pure.

import { count, counted, figure } from "./format";
import type { Episode, Picture, Shape } from "./agent_types";

// A point (x, y) of the picture lies at (dx + x * scale, dy - y * scale).
export interface Fit {
  scale: number;
  dx: number;
  dy: number;
}

// The whole view, as large as it goes, in the middle.
export function fitView(view: Picture["view"], width: number, height: number): Fit {
  const [left, right, bottom, top] = view;
  const scale = Math.min(width / Math.max(right - left, 1e-9), height / Math.max(top - bottom, 1e-9));
  return {
    scale,
    dx: width / 2 - ((left + right) / 2) * scale,
    dy: height / 2 + ((bottom + top) / 2) * scale,
  };
}

function isAlike(a: Shape, b: Shape): boolean {
  return a.form === b.form && a.ink === b.ink && a.points.length === b.points.length;
}

// Between two shapes; the first one where something jumps, as food does that was eaten.
function shapeBetween(a: Shape, b: Shape, part: number, jump: number): Shape {
  const points: number[] = [];
  for (let i = 0; i < a.points.length; i++) {
    const from = a.points[i] as number;
    const way = (b.points[i] as number) - from;
    if (Math.abs(way) > jump) return a;
    points.push(from + way * part);
  }
  const moved: Shape = { ...a, points };
  if (a.width !== undefined && b.width !== undefined) moved.width = a.width + (b.width - a.width) * part;
  return moved;
}

const jumpShare = 0.25; // of the view

// The shapes at `part`, 0 to 1, of the way from a picture to the next. Shapes that come and go, as flames do,
// lie between others that stay: these are found from both ends.
export function between(a: Picture, b: Picture, part: number): Shape[] {
  if (part <= 0) return a.shapes;
  const [left, right, bottom, top] = a.view;
  const jump = Math.max(right - left, top - bottom) * jumpShare;
  const most = Math.min(a.shapes.length, b.shapes.length);
  const at = (picture: Picture, i: number): Shape => picture.shapes[i] as Shape;
  let first = 0;
  while (first < most && isAlike(at(a, first), at(b, first))) first++;
  let last = 0;
  while (last < most - first && isAlike(at(a, a.shapes.length - 1 - last), at(b, b.shapes.length - 1 - last)))
    last++;
  const ahead = b.shapes.length - a.shapes.length;
  return a.shapes.map((shape, i) => {
    if (i < first) return shapeBetween(shape, at(b, i), part, jump);
    if (i >= a.shapes.length - last) return shapeBetween(shape, at(b, i + ahead), part, jump);
    return shape;
  });
}

// What has come in before each step, and in all: one more than there are rewards.
export function returnsOf(rewards: number[]): number[] {
  const sums = [0];
  for (const reward of rewards) sums.push((sums[sums.length - 1] as number) + reward);
  return sums;
}

// A return, without digits that say nothing.
export function returnText(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return figure(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return value < 0 ? `-${count(-value)}` : count(value);
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

// A mean with its deviation, with no more digits than the deviation leaves a meaning.
export function spreadText(mean: number | null | undefined, deviation: number | null | undefined): string {
  if (mean === null || mean === undefined || deviation === null || deviation === undefined)
    return returnText(mean);
  const isWhole =
    deviation >= 10 || Math.abs(mean) >= 100 || (Number.isInteger(mean) && Number.isInteger(deviation));
  const text = (n: number): string =>
    isWhole ? returnText(Math.round(n)) : n.toFixed(deviation >= 1 ? 1 : 2);
  return `${text(mean)} ± ${text(deviation)}`;
}

// How it ended, for who watched.
export function endText(episode: Pick<Episode, "end" | "return" | "rewards">): string {
  const steps = episode.rewards.length;
  const how = { terminated: "Ended", truncated: "Out of time", "goes on": "Cut off here" }[episode.end];
  return `${how} after ${counted(steps, "step")}, return ${returnText(episode.return)}`;
}
