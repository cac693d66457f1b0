// agent_curve.ts: the numbers behind an agent's curves. Pure.

import type { AgentPoint, Checkpoint } from "./agent_types";

export type Over = "steps" | "seconds";

// Points that came later behind those that are there; those that are there already are left out. After a
// server was killed some are played again: what was beyond is replaced.
export function addAgentPoints(points: AgentPoint[], more: AgentPoint[]): AgentPoint[] {
  let all = points.slice();
  for (const point of more) {
    const last = all[all.length - 1];
    if (last && last.steps === point.steps) {
      // The last one is told again when its score is known.
      all[all.length - 1] = { ...last, ...point };
      continue;
    }
    if (last && point.steps < last.steps) all = all.filter((one) => one.steps < point.steps);
    all.push(point);
  }
  return all;
}

export interface AgentCurves {
  xs: number[];
  mean: (number | null)[];
  above: (number | null)[]; // a deviation above the mean, and below
  below: (number | null)[];
  scores: (number | null)[];
  speed: (number | null)[];
  lag: (number | null)[];
}

// At most `max` points, evenly chosen by their number; scores and the last one stay.
export function thinned(points: AgentPoint[], max: number): AgentPoint[] {
  const stride = Math.ceil(points.length / max);
  if (stride <= 1) return points;
  return points.filter((point, i) => i % stride === 0 || i === points.length - 1 || isScored(point));
}

function isScored(point: AgentPoint): boolean {
  return point.score !== undefined && point.score !== null;
}

export function curvesOf(points: AgentPoint[], over: Over): AgentCurves {
  const edge = (point: AgentPoint, sign: number): number | null =>
    point.return_mean === null ? null : point.return_mean + sign * (point.return_deviation ?? 0);
  return {
    xs: points.map((point) => point[over]),
    mean: points.map((point) => point.return_mean),
    above: points.map((point) => edge(point, 1)),
    below: points.map((point) => edge(point, -1)),
    scores: points.map((point) => point.score ?? null),
    speed: points.map((point) => point.steps_per_second),
    lag: points.map((point) => point.lag),
  };
}

// Where a checkpoint lies on an axis: between the points before and behind it.
export function placeOf(steps: number, points: AgentPoint[], over: Over): number {
  if (over === "steps") return steps;
  const next = points.findIndex((point) => point.steps >= steps);
  const b = points[next];
  if (!b) return points[points.length - 1]?.seconds ?? 0;
  const a = points[next - 1] ?? { steps: 0, seconds: 0 };
  return a.seconds + ((b.seconds - a.seconds) * (steps - a.steps)) / Math.max(b.steps - a.steps, 1);
}

// The checkpoint that is nearest to a place on an axis; -1: there is none.
export function nearestCheckpoint(
  checkpoints: Checkpoint[],
  points: AgentPoint[],
  over: Over,
  x: number,
): number {
  let best = -1;
  let least = Infinity;
  checkpoints.forEach((checkpoint, i) => {
    const far = Math.abs(placeOf(checkpoint.steps, points, over) - x);
    if (far >= least) return;
    least = far;
    best = i;
  });
  return best;
}

// The steps of the checkpoint that is nearest; null: there is none.
export function nearestSteps(checkpoints: Checkpoint[], steps: number): number | null {
  return checkpoints[nearestCheckpoint(checkpoints, [], "steps", steps)]?.steps ?? null;
}

// Numbers at an axis: 950, 12.5k, 1.25M
export function stepsMark(n: number): string {
  const size = Math.abs(n);
  const [unit, letter] =
    size >= 1e9 ? [1e9, "G"] : size >= 1e6 ? [1e6, "M"] : size >= 1e3 ? [1e3, "k"] : [1, ""];
  return `${Number((n / unit).toPrecision(4))}${letter}`;
}

const two = (n: number): string => String(n).padStart(2, "0");

// 0.5 s, 45 s, 1:30, 1:05:00
export function timeMark(seconds: number): string {
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  const s = Math.round(seconds);
  const minutes = Math.floor(s / 60) % 60;
  if (s < 3600) return `${minutes}:${two(s % 60)}`;
  return `${Math.floor(s / 3600)}:${two(minutes)}:${two(s % 60)}`;
}

// Ways between marks of time that people count in.
export const timeSteps = [
  0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400,
];
