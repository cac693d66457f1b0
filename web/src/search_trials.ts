// search_trials.ts: the trials of a search: units merged by trial, best so far, filters. Pure.

import type { Setting, TrialRow } from "./search_types";

// What is known of a trial: its last unit, and the seconds of all of them.
export interface Trial {
  trial: number;
  unit: number;
  rung: number;
  worker: string;
  time: number;
  settings: Record<string, Setting>;
  text: string; // the settings in a line
  failed: boolean;
  error: string;
  over: boolean;
  score: number | null;
  scores: Record<string, number | null>;
  epochs: number;
  bestEpoch: number;
  weights: number;
  seconds: number;
}

export interface ScoreAt {
  time: number;
  score: number;
  trial: number;
}

export function settingsText(settings: Record<string, Setting>): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}

export class Trials {
  private readonly byTrial = new Map<number, Trial>();
  private readonly units = new Set<number>();
  private readonly points: ScoreAt[] = [];
  private firstMissing = 0;

  get count(): number {
    return this.byTrial.size;
  }

  // The first unit that is not known: where to go on asking.
  get from(): number {
    while (this.units.has(this.firstMissing)) this.firstMissing++;
    return this.firstMissing;
  }

  // Rows may come in any order and more than once. True when something was new.
  add(rows: TrialRow[]): boolean {
    let isNew = false;
    for (const row of rows) {
      if (this.units.has(row.unit)) continue;
      this.units.add(row.unit);
      this.take(row);
      isNew = true;
    }
    return isNew;
  }

  get(trial: number): Trial | undefined {
    return this.byTrial.get(trial);
  }

  // The best first; those without a score at the end.
  ranked(higherIsBetter: boolean): Trial[] {
    return [...this.byTrial.values()].sort((a, b) => compare(a, b, higherIsBetter));
  }

  // The score of the best unit at every time at which it became better.
  bestSoFar(higherIsBetter: boolean): ScoreAt[] {
    const sorted = this.points.slice().sort((a, b) => a.time - b.time || a.trial - b.trial);
    const best: ScoreAt[] = [];
    for (const point of sorted) {
      const last = best[best.length - 1];
      if (!last || isBetter(point.score, last.score, higherIsBetter)) best.push(point);
    }
    return best;
  }

  private take(row: TrialRow): void {
    const { result } = row;
    const score = result.failed || !Number.isFinite(result.score ?? NaN) ? null : result.score;
    if (score !== null) this.points.push({ time: row.time, score, trial: row.trial });
    const known = this.byTrial.get(row.trial);
    const seconds = (known?.seconds ?? 0) + (result.seconds || 0);
    if (known && known.unit > row.unit) {
      known.seconds = seconds;
      return;
    }
    this.byTrial.set(row.trial, {
      trial: row.trial,
      unit: row.unit,
      rung: row.rung,
      worker: row.worker,
      time: row.time,
      settings: row.settings,
      text: known?.text ?? settingsText(row.settings),
      failed: result.failed,
      error: result.error,
      over: result.over,
      score,
      scores: result.scores,
      epochs: result.epochs,
      bestEpoch: result.best_epoch,
      weights: result.weights,
      seconds,
    });
  }
}

export function isBetter(a: number, b: number, higherIsBetter: boolean): boolean {
  return higherIsBetter ? a > b : a < b;
}

function compare(a: Trial, b: Trial, higherIsBetter: boolean): number {
  if (a.score === null || b.score === null) {
    if (a.score === null && b.score === null) return a.trial - b.trial;
    return a.score === null ? 1 : -1;
  }
  if (a.score === b.score) return a.trial - b.trial;
  return isBetter(a.score, b.score, higherIsBetter) ? -1 : 1;
}

// What a column is sorted by: trials without a score are the worst.
export function sortScore(trial: Trial, higherIsBetter: boolean): number {
  return trial.score ?? (higherIsBetter ? -Infinity : Infinity);
}

// ---- filters ----

export type Test = (trial: Trial) => boolean;

const comparison = /^([a-z0-9-]+)(<=|>=|<|>|=|:)(.*)$/i;

function valueOf(trial: Trial, name: string): Setting | null {
  switch (name) {
    case "score":
      return trial.score;
    case "trial":
    case "epochs":
    case "weights":
    case "seconds":
      return trial[name];
    case "worker":
      return trial.worker;
    default:
      return trial.settings[name] ?? trial.scores[name] ?? null;
  }
}

function compares(found: Setting | null, sign: string, wanted: string): boolean {
  if (found === null) return false;
  if (sign === "=" || sign === ":")
    return (
      String(found).toLowerCase() === wanted ||
      (typeof found === "number" && wanted !== "" && found === Number(wanted))
    );
  const a = Number(found);
  const b = Number(wanted);
  if (wanted === "" || Number.isNaN(a) || Number.isNaN(b)) return false;
  return sign === "<" ? a < b : sign === "<=" ? a <= b : sign === ">" ? a > b : a >= b;
}

// "layers=3 width>64 relu": all of the words must hold; one without a sign is looked for in the settings.
export function filterOf(text: string): Test {
  const tests = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
    .map((word): Test => {
      const [, name, sign, wanted] = comparison.exec(word) ?? [];
      if (name && sign && wanted !== undefined)
        return (trial) => compares(valueOf(trial, name), sign, wanted);
      return (trial) =>
        trial.text.includes(word) || String(trial.trial) === word || trial.worker.includes(word);
    });
  return (trial) => tests.every((test) => test(trial));
}
