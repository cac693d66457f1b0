// search_curves.ts: the settings and learning curves of chosen trials, or of the best ones when none was
// chosen.

import { get } from "./api";
import { Chart, type Curve } from "./chart";
import { h, replace, setText } from "./dom";
import { figure } from "./format";
import { chosenColours } from "./search_layers";
import type { Trial } from "./search_trials";
import type { CurvePoint, TrialWithCurve } from "./search_types";

const waitingText = "Curves appear with the first trials that have a score.";
const noneText = "These trials have no curve.";
const failedText = "The curves could not be fetched; they are asked for again with the next change.";
const bestText = "Of the best trials. Tick others in the leaderboard to compare them.";

function described(trial: Trial): HTMLElement {
  return h("li", null, h("strong", null, `Trial ${trial.trial}, ${figure(trial.score)}: `), trial.text);
}

export class LearningCurves {
  readonly node: HTMLElement;
  private readonly curves = new Map<number, { epochs: number; points: CurvePoint[] }>();
  private charts: Chart[] = [];
  private wanted: number[] = [];
  private metric = "score";
  private isClosed = false;
  private readonly holder = h("div", { class: "columns", hidden: true });
  private readonly note = h("p", { class: "empty" }, waitingText);
  private readonly about = h("p", { class: "hint", hidden: true }, bestText);
  private readonly list = h("ul", { class: "points small", hidden: true });

  constructor(private readonly path: string) {
    this.node = h("div", { class: "stack" }, this.about, this.holder, this.note, this.list);
  }

  // A curve is asked for again only when its trial has gone on. `areChosen`: by a person.
  show(trials: Trial[], metric: string, areChosen: boolean): void {
    this.about.hidden = areChosen || trials.length === 0;
    replace(this.list, ...trials.map(described));
    this.list.hidden = trials.length === 0;
    const stale = trials.filter((one) => this.curves.get(one.trial)?.epochs !== one.epochs);
    const isSame =
      metric === this.metric &&
      stale.length === 0 &&
      trials.length === this.wanted.length &&
      trials.every((one, i) => one.trial === this.wanted[i]);
    this.wanted = trials.map((one) => one.trial);
    this.metric = metric;
    if (isSame) return;
    if (stale.length === 0) this.draw();
    else void this.fetch(stale);
  }

  close(): void {
    this.isClosed = true;
    for (const chart of this.charts) chart.close();
  }

  private async fetch(trials: { trial: number; epochs: number }[]): Promise<void> {
    await Promise.all(
      trials.map(async ({ trial, epochs }) => {
        try {
          const got = await get<TrialWithCurve>(`${this.path}/trials/${trial}`);
          this.curves.set(trial, { epochs, points: got.curve });
        } catch {
          // It is asked again with the next change.
        }
      }),
    );
    if (!this.isClosed) this.draw();
  }

  private draw(): void {
    for (const chart of this.charts) chart.close();
    const shown = this.wanted.filter((trial) => (this.curves.get(trial)?.points.length ?? 0) > 0);
    this.note.hidden = shown.length > 0;
    this.holder.hidden = shown.length === 0;
    const areKnown = this.wanted.every((trial) => this.curves.has(trial));
    setText(this.note, this.wanted.length === 0 ? waitingText : areKnown ? noneText : failedText);
    const chart = (label: string, at: 1 | 2): Chart => {
      const made = new Chart({
        label,
        height: 220,
        xName: "epoch",
        show: figure,
        series: shown.map((trial, i) => ({
          label: `trial ${trial}`,
          colour: chosenColours[i % chosenColours.length] as string,
        })),
      });
      made.set(
        shown.map((trial): Curve => {
          const points = (this.curves.get(trial)?.points ?? []).filter((point) => point[at] !== null);
          return [points.map((point) => point[0]), points.map((point) => point[at])];
        }),
      );
      return made;
    };
    this.charts =
      shown.length === 0
        ? []
        : [chart(`${this.metric} by epoch, held out`, 2), chart("Training loss by epoch", 1)];
    const whose = shown.length === 1 ? ` of trial ${shown[0]}` : ""; // a legend is for more than one
    const titles = [`${this.metric}${whose}, held out`, `Training loss${whose}`];
    replace(
      this.holder,
      ...this.charts.map((one, i) => h("div", null, h("p", { class: "muted small" }, titles[i]), one.node)),
    );
  }
}
