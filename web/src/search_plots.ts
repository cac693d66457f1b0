// search_plots.ts: the plots of a search: best so far over time, score against size, score against time.

import { h } from "./dom";
import { linearAxis, numberAxis, robustRange, type Axis } from "./search_axes";
import { Plot, type Point } from "./search_plot";
import type { ScoreAt, Trial, Trials } from "./search_trials";

export interface PlotsOptions {
  tip(trial: number): string[];
  pick(trial: number): void;
  hover(trial: number): void;
}

// How long ago something began, in the unit that suits how long it takes. Pure.
export function timeUnit(seconds: number): { name: string; seconds: number } {
  if (seconds < 180) return { name: "seconds", seconds: 1 };
  if (seconds < 3 * 3600) return { name: "minutes", seconds: 60 };
  return { name: "hours", seconds: 3600 };
}

function scoreAxis(trials: Trial[], more: ScoreAt[], name: string): Axis {
  const scores = trials.flatMap((trial) => (trial.score === null ? [] : [trial.score]));
  const [low, high] = robustRange([...scores, ...more.map((point) => point.score)]);
  const room = (high - low) * 0.04;
  return linearAxis(name, low - room, high + room, 5);
}

export class SearchPlots {
  readonly node: HTMLElement;
  private readonly best: Plot;
  private readonly bySize: Plot;
  private readonly byTime: Plot;

  constructor(options: PlotsOptions) {
    const plot = (label: string, height: number): Plot =>
      new Plot({
        label,
        height,
        tip: (point) => options.tip(point.trial),
        pick: options.pick,
        hover: options.hover,
      });
    this.best = plot("Best so far over time", 260);
    this.bySize = plot("Score by number of weights", 260);
    this.byTime = plot("Score by time of computing", 260);
    const titled = (title: string, one: Plot): HTMLElement =>
      h("section", { class: "card" }, h("h2", null, title), one.node);
    this.node = h(
      "div",
      { class: "stack" },
      titled("Best so far", this.best),
      h(
        "div",
        { class: "columns" },
        titled("Score against size", this.bySize),
        titled("Score against time", this.byTime),
      ),
    );
  }

  // `shown`: the trials that filters leave. `began`: where the time begins.
  set(all: Trials, shown: Trial[], metric: string, higherIsBetter: boolean, began: number): void {
    const scored = shown.filter((trial) => trial.score !== null);
    const best = all.bestSoFar(higherIsBetter);
    const times = scored.map((trial) => trial.time).concat(best.map((point) => point.time));
    const first = times.reduce((least, time) => Math.min(least, time), Infinity);
    const start = began > 0 && began <= first ? began : first;
    const last = times.reduce((most, time) => Math.max(most, time), start);
    const unit = timeUnit(last - start);
    const y = scoreAxis(scored, best, metric);
    const at = (time: number): number => (time - start) / unit.seconds;
    const points = (x: (trial: Trial) => number): Point[] =>
      scored.map((trial) => ({ x: x(trial), y: trial.score as number, trial: trial.trial }));
    const empty = all.count > 0 && shown.length === 0 ? "No trial passes the filter." : undefined;
    this.best.set({
      empty,
      x: linearAxis(`${unit.name} since the start`, 0, Math.max(at(last), 1e-9), 6),
      y,
      points: points((trial) => at(trial.time)),
      line: best.map((point) => ({ x: at(point.time), y: point.score })),
    });
    const weights = scored.map((trial) => trial.weights);
    this.bySize.set({
      empty,
      x: numberAxis("weights", weights, 5),
      y,
      points: points((trial) => trial.weights),
    });
    const seconds = scored.map((trial) => trial.seconds);
    this.byTime.set({
      empty,
      x: numberAxis("seconds of computing", seconds, 5),
      y,
      points: points((trial) => trial.seconds),
    });
  }

  mark(chosen: number[], pointed: number): void {
    for (const plot of [this.best, this.bySize, this.byTime]) plot.mark(chosen, pointed);
  }

  repaint(): void {
    for (const plot of [this.best, this.bySize, this.byTime]) plot.repaint();
  }

  close(): void {
    for (const plot of [this.best, this.bySize, this.byTime]) plot.close();
  }
}
