// compared.ts: the curves of several trainings on one axis. Pure.

import type { Curve } from "./chart";
import { smooth } from "./curve";
import type { History, Job } from "./types";

export type CompareX = "round" | "epoch" | "time";

export interface Compared {
  job: Pick<Job, "id" | "name" | "rounds" | "progress">;
  history: History;
}

const smoothOver = 20;

// Where a point stands: `step` of the training, at `time`.
export function placeOf(one: Compared, x: CompareX, step: number, time: number): number {
  if (x === "round") return step;
  if (x === "epoch") return one.job.rounds > 0 ? step / one.job.rounds : 0;
  const { rounds, epochs } = one.history;
  return time - Math.min(rounds[0]?.[1] ?? time, epochs[0]?.time ?? time);
}

// Training: the mean of some rounds. The times of a training that was resumed have a gap where it stood still.
export function trainCurve(one: Compared, x: CompareX, at: "loss" | "metric"): Curve {
  const { rounds } = one.history;
  return [
    rounds.map((round) => placeOf(one, x, round[0], round[1])),
    smooth(
      rounds.map((round) => round[at === "loss" ? 2 : 3]),
      smoothOver,
    ),
  ];
}

export function heldOutCurve(one: Compared, x: CompareX, at: "loss" | "metric"): Curve {
  const { epochs } = one.history;
  return [
    epochs.map((epoch) => placeOf(one, x, epoch.step, epoch.time)),
    epochs.map((epoch) => (at === "loss" ? epoch.held_out_loss : epoch.held_out_metric)),
  ];
}

export function isThere(curve: Curve): boolean {
  return curve[1].some((y) => y !== null);
}

// Names that tell them apart: those that several have get their numbers.
export function namesOf(jobs: Pick<Job, "id" | "name">[]): string[] {
  return jobs.map(({ id, name }) =>
    jobs.some((other) => other.id !== id && other.name === name) ? `${name} (#${id})` : name,
  );
}
