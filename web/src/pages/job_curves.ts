// job_curves.ts: the curves of a job: loss, metric and speed, by round and by epoch.

import { Chart } from "../chart";
import { addPoints, smooth } from "../curve";
import { h, setText } from "../dom";
import { capital, short, value } from "../format";
import type { EpochPoint, History, Job, RoundPoint } from "../types";

const roundsMax = 4000;
const smoothOver = 20;

export class JobCurves {
  readonly node: HTMLElement;
  private rounds: RoundPoint[] = [];
  private epochs: EpochPoint[] = [];
  private readonly loss = curve("Loss by round", "loss");
  private readonly metric = curve("Metric by round", "metric");
  private readonly speed = new Chart({
    label: "Samples a second, by round",
    height: 160,
    fromZero: true,
    show: short,
    series: [{ label: "samples/s", colour: "accent", fill: true }],
  });
  private readonly metricTitle = h("h2", null, "Metric");

  constructor(job: number) {
    const compare = h("a", { class: "small", href: `/compare?jobs=${job}` }, "Compare with others");
    this.node = h(
      "div",
      { class: "stack" },
      h(
        "div",
        { class: "columns" },
        h(
          "section",
          { class: "card" },
          h("div", { class: "cardhead" }, h("h2", null, "Loss"), compare),
          this.loss.node,
        ),
        h("section", { class: "card" }, this.metricTitle, this.metric.node),
      ),
      h("section", { class: "card" }, h("h2", null, "Samples a second"), this.speed.node),
    );
  }

  get areThere(): boolean {
    return this.rounds.length > 0 || this.epochs.length > 0;
  }

  reset(history: History): void {
    this.rounds = history.rounds;
    this.epochs = history.epochs;
    this.draw();
  }

  addRounds(rounds: RoundPoint[]): void {
    this.rounds = addPoints(this.rounds, rounds, roundsMax);
    this.draw();
  }

  addEpoch(epoch: EpochPoint): void {
    this.epochs = this.epochs.filter((one) => one.epoch < epoch.epoch).concat(epoch);
    this.draw();
  }

  name(job: Job): void {
    const name = job.progress.metric_name || "metric";
    setText(this.metricTitle, capital(name));
  }

  close(): void {
    this.loss.close();
    this.metric.close();
    this.speed.close();
  }

  private draw(): void {
    const steps = this.rounds.map((round) => round[0]);
    const ends = this.epochs.map((epoch) => epoch.step);
    const show = (chart: Chart, train: (number | null)[], heldOut: (number | null)[]): void => {
      chart.set([
        [steps, train],
        [steps, smooth(train, smoothOver)],
        [ends, heldOut],
      ]);
      const last = heldOut[heldOut.length - 1] ?? train[train.length - 1];
      if (last !== undefined && last !== null) chart.describe(`${value(last)} at last`);
    };
    show(
      this.loss,
      this.rounds.map((round) => round[2]),
      this.epochs.map((epoch) => epoch.held_out_loss),
    );
    show(
      this.metric,
      this.rounds.map((round) => round[3]),
      this.epochs.map((epoch) => epoch.held_out_metric),
    );
    this.speed.set([[steps, this.rounds.map((round) => round[4])]]);
  }
}

function curve(label: string, what: string): Chart {
  return new Chart({
    label,
    height: 240,
    series: [
      { label: what, colour: "accent", faint: true },
      { label: "training, mean of some rounds", colour: "accent" },
      { label: "held out, after an epoch", colour: "second", points: true },
    ],
  });
}
