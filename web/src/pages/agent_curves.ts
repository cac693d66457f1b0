// agent_curves.ts: the curves of an agent: returns with their spread, the goal and scores; steps a second;
// how far actors lag. Over steps or over time, as one wants; a click on the returns chooses a checkpoint.

import {
  addAgentPoints,
  curvesOf,
  placeOf,
  stepsMark,
  thinned,
  timeMark,
  timeSteps,
  type Over,
} from "../agent_curve";
import { returnText, spreadText } from "../agent_picture";
import { lagText } from "../agent_spec";
import type { AgentPoint } from "../agent_types";
import { Chart, type XAxis } from "../chart";
import { h } from "../dom";
import { count, duration, short } from "../format";
import { explained, help } from "../help";

const pointsMax = 2000; // that are drawn
const heights = { wide: 440, narrow: 280 }; // beside the agent at play, and below it
const wide = "(min-width: 60rem)";

const axes: Record<Over, XAxis> = {
  steps: { name: "steps", mark: stepsMark, head: (x) => `after ${count(x)} steps` },
  seconds: { name: "time", mark: timeMark, head: (x) => `after ${duration(x)}`, steps: timeSteps },
};

export class AgentCurves {
  readonly returns: HTMLElement; // a card each
  readonly rest: HTMLElement;
  over: Over = "steps";
  points: AgentPoint[] = [];
  private shown: number | null = null; // steps of the checkpoint that is played
  private readonly returnChart: Chart;
  private readonly speed: Chart;
  private readonly lag: Chart;
  private readonly note = h("p", { class: "empty" }, "The curve begins with the first episodes that end.");

  // pick: a place on the axis was chosen.
  constructor(pick: (x: number) => void) {
    this.returnChart = new Chart({
      label: "Return of an episode",
      height: matchMedia(wide).matches ? heights.wide : heights.narrow,
      show: returnText,
      series: [
        { label: "a deviation above", colour: "accent", edge: true },
        { label: "a deviation below", colour: "accent", edge: true },
        { label: "return", colour: "accent" },
        { label: "score", colour: "second", points: true, lone: true },
      ],
      bands: [{ between: [0, 1], colour: "accent", label: "± deviation" }],
      pick,
    });
    this.speed = new Chart({
      label: "Steps a second",
      height: 170,
      fromZero: true,
      show: short,
      series: [{ label: "steps/s", colour: "accent", fill: true }],
    });
    this.lag = new Chart({
      label: "Policy lag, in versions",
      height: 170,
      fromZero: true,
      show: lagText,
      series: [{ label: "versions behind", colour: "second", fill: true }],
    });
    for (const chart of this.charts()) chart.setX(axes.steps);
    this.returns = h(
      "section",
      { class: "card" },
      h("div", { class: "cardhead" }, h("h2", null, "Return of an episode"), this.switch()),
      this.returnChart.node,
      this.note,
      h(
        "p",
        { class: "hint" },
        "Returns of the last episodes that were played to learn; scores are of up to 100 episodes without " +
          "trying things out. Click on the curve to watch the agent of that time.",
      ),
    );
    this.returnChart.node.hidden = true;
    this.rest = h(
      "div",
      { class: "columns", hidden: true },
      h("section", { class: "card" }, h("h2", null, "Steps a second"), this.speed.node),
      h("section", { class: "card" }, h("h2", null, explained("Policy lag", help.lag)), this.lag.node),
    );
  }

  set(points: AgentPoint[]): void {
    this.points = addAgentPoints([], points);
    this.draw();
  }

  add(points: AgentPoint[]): void {
    this.points = addAgentPoints(this.points, points);
    this.draw();
  }

  setGoal(goal: number | null): void {
    this.returnChart.setLevel(goal, goal === null ? "" : `solved at ${returnText(goal)}`);
  }

  // Of the checkpoint that is played.
  show(steps: number | null): void {
    this.shown = steps;
    this.mark();
  }

  close(): void {
    for (const chart of this.charts()) chart.close();
  }

  private charts(): Chart[] {
    return [this.returnChart, this.speed, this.lag];
  }

  private switch(): HTMLElement {
    const choice = (over: Over, text: string): HTMLElement => {
      const input = h("input", { type: "radio", name: "curves-over", value: over });
      input.checked = over === this.over;
      input.addEventListener("change", () => this.switchTo(over));
      return h("label", null, input, h("span", null, text));
    };
    return h(
      "div",
      { class: "switch", role: "radiogroup", "aria-label": "Curves over" },
      choice("steps", "Steps"),
      choice("seconds", "Time"),
    );
  }

  private switchTo(over: Over): void {
    this.over = over;
    for (const chart of this.charts()) chart.setX(axes[over]);
    this.draw();
  }

  private mark(): void {
    const at = this.shown === null ? null : placeOf(this.shown, this.points, this.over);
    this.returnChart.setMark(this.points.length > 1 ? at : null);
  }

  private draw(): void {
    const { xs, mean, above, below, scores, speed, lag } = curvesOf(
      thinned(this.points, pointsMax),
      this.over,
    );
    this.note.hidden = mean.some((one) => one !== null);
    this.returnChart.node.hidden = !this.note.hidden;
    this.rest.hidden = this.points.length === 0;
    this.returnChart.set([
      [xs, above],
      [xs, below],
      [xs, mean],
      [xs, scores],
    ]);
    this.speed.set([[xs, speed]]);
    this.lag.set([[xs, lag]]);
    this.mark();
    const last = this.points[this.points.length - 1];
    if (!last) return;
    this.returnChart.describe(`${spreadText(last.return_mean, last.return_deviation)} at last`);
    this.speed.describe(`${short(last.steps_per_second ?? 0)} at last`);
    this.lag.describe(`${lagText(last.lag)} at last`);
  }
}
