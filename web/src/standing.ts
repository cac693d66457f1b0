// standing.ts: how far a worker is believed, in words. Pure. Jobs that nobody guards tell nothing of it.

import { count, none } from "./format";
import type { JobWorker, Worker } from "./types";

export function standingText(worker: JobWorker): string {
  return worker.standing ?? "";
}

// Units of it that were computed again: how many agreed, and if any were wrong.
export function auditsText(worker: JobWorker): string {
  const { audits_agreed: agreed, audits_wrong: wrong } = worker;
  if (agreed === undefined && wrong === undefined) return "";
  const right = count(agreed ?? 0);
  return wrong ? `${right}, ${count(wrong)} wrong` : right;
}

export function rejectedText(worker: JobWorker): string {
  return worker.rejected === undefined ? "" : count(worker.rejected);
}

// The worst first: who sorts by it looks for trouble.
export function standingRank(worker: JobWorker): number {
  return worker.standing === undefined ? 3 : ["banned", "unproven", "proven"].indexOf(worker.standing);
}

// Of all workers together; null where nobody guards the job.
export function allRejected(workers: JobWorker[]): number | null {
  if (!isGuarded(workers)) return null;
  return workers.reduce((sum, worker) => sum + (worker.rejected ?? 0), 0);
}

export function isGuarded(workers: JobWorker[]): boolean {
  return workers.some((worker) => worker.standing !== undefined);
}

// What it does just now.
export function nowText(worker: JobWorker, isRunning: boolean): string {
  if (worker.standing === "banned") return "banned";
  if (!isRunning) return none;
  if (!worker.here) return "gone";
  if (worker.late) return "late";
  if (worker.units_held === undefined) return "here";
  return worker.units_held > 0 ? "computing" : "waiting";
}

export function nowClass(worker: JobWorker, isRunning: boolean): string {
  if (worker.standing === "banned") return "banned";
  if (!isRunning) return "";
  return worker.late ? "late" : worker.here ? "" : "gone";
}

// Of one that is here and takes no work now.
export function pausedText(worker: Pick<Worker, "name" | "text">): string {
  return worker.text ? `${worker.name} is paused: ${worker.text}.` : `${worker.name} is paused.`;
}
