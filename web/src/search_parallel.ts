// search_parallel.ts: parallel coordinates: an axis for every setting, a line for every trial, the better the
// stronger. A stretch of an axis can be chosen with the pointer: only trials that go through it are kept.
//
// Thousands of lines are drawn some in each frame, the worst first, so that the page never waits for them.

import { fitted } from "./canvas";
import { colour, drawsAtOnce, h, setText } from "./dom";
import { counted } from "./format";
import { axesOf, nearestLine, placesOf, type Axis } from "./search_axes";
import { chosenColours, Layers, TrialPicture } from "./search_layers";
import type { Test, Trial } from "./search_trials";

const height = 320;
const side = 44;
const top = 42;
const bottom = 14;
const axisPx = 64; // at least, between two axes
const linesAFrame = 250;
const nearPx = 8;

// Trials from the best on, up to a part of all, and how much of the paper their lines may cover together.
const bands: { to: number; colour: string; cover: number }[] = [
  { to: 0.005, colour: "accent", cover: 0.95 },
  { to: 0.03, colour: "accent-bar", cover: 0.4 },
  { to: 0.15, colour: "accent-bar", cover: 0.25 },
  { to: 0.5, colour: "accent-bar", cover: 0.18 },
  { to: 1, colour: "edge", cover: 0.15 },
];
const dragPx = 4;

interface Stretch {
  low: number;
  high: number;
}

export interface ParallelOptions {
  hover(trial: number): void;
  pick(trial: number): void;
  kept(test: Test | null): void; // null: all
  tip(trial: number): string[];
}

export class Parallel extends TrialPicture {
  readonly node: HTMLElement;
  protected layers: Layers;
  private trials: Trial[] = []; // the best first
  private axes: Axis[] = [];
  private places: Float32Array = new Float32Array();
  private readonly stretches = new Map<string, Stretch>();
  private drag: { axis: Axis; from: number; moved: boolean } | null = null;
  private run = 0; // of drawing; an older one ends
  private readonly holder = h("div");
  private readonly note = h("p", { class: "empty" }, "Lines appear with the first trials that differ.");
  private readonly all = h(
    "button",
    { type: "button", class: "link small", hidden: true, onclick: () => this.clear() },
    "Show all again",
  );
  private readonly help = h(
    "p",
    { class: "muted small", hidden: true },
    "Drag along an axis to keep the trials that go through that stretch. The filter of the leaderboard " +
      "does the same by keyboard.",
  );

  constructor(private readonly options: ParallelOptions) {
    super((trial) => options.hover(trial));
    this.layers = this.makeLayers(0);
    this.node = h(
      "div",
      { class: "stack" },
      this.holder,
      this.note,
      h("div", { class: "row" }, this.help, this.all),
    );
  }

  set(trials: Trial[], scoreName: string): void {
    const scored = trials.filter((trial) => trial.score !== null);
    const axes = axesOf(scored, scoreName);
    if (axes.length !== this.axes.length) this.layers = this.makeLayers(axes.length);
    this.trials = scored;
    this.axes = axes;
    this.places = placesOf(scored, axes);
    const enough = axes.length > 1;
    this.holder.hidden = this.help.hidden = !enough;
    this.note.hidden = enough;
    const names = axes.map((axis) => axis.name).join(", ");
    this.layers.label(`Settings of ${counted(scored.length, "trial")}: ${names}`);
    this.layers.draw();
  }

  override close(): void {
    this.run++;
    super.close();
  }

  private makeLayers(axes: number): Layers {
    this.layers?.close();
    const layers = new Layers(
      "Settings of trials",
      height,
      {
        base: (context) => this.drawBase(context),
        top: (context) => this.drawTop(context),
      },
      axes > 1 ? (axes - 1) * axisPx + 2 * side : 0,
    );
    const { surface } = layers;
    surface.addEventListener("pointermove", (event) => this.move(event));
    surface.addEventListener("pointerleave", () => this.point(0));
    surface.addEventListener("pointerdown", (event) => this.down(event));
    surface.addEventListener("pointerup", (event) => this.up(event));
    surface.addEventListener("pointercancel", () => (this.drag = null));
    this.holder.replaceChildren(layers.node);
    return layers;
  }

  private x(axis: number): number {
    return side + (axis * (this.layers.width - 2 * side)) / Math.max(this.axes.length - 1, 1);
  }

  private y(place: number): number {
    return height - bottom - place * (height - top - bottom);
  }

  private placeAt(y: number): number {
    return Math.min(Math.max((height - bottom - y) / (height - top - bottom), 0), 1);
  }

  private isKept(row: number): boolean {
    for (let a = 0; a < this.axes.length && this.stretches.size > 0; a++) {
      const stretch = this.stretches.get((this.axes[a] as Axis).name);
      const place = this.places[row * this.axes.length + a] as number;
      if (stretch && !(place >= stretch.low - 0.005 && place <= stretch.high + 0.005)) return false;
    }
    return true;
  }

  // ---- drawing ----

  private addLine(context: CanvasRenderingContext2D, row: number): void {
    const count = this.axes.length;
    let isDown = false;
    for (let a = 0; a < count; a++) {
      const place = this.places[row * count + a] as number;
      if (Number.isNaN(place)) continue; // a setting without effect: the line goes past its axis
      if (isDown) context.lineTo(this.x(a), this.y(place));
      else context.moveTo(this.x(a), this.y(place));
      isDown = true;
    }
  }

  // The lines of a band are drawn in several strokes: each is the paler, the more there are.
  private strokeOf(band: number): string {
    const { to, colour: name, cover } = bands[band] as (typeof bands)[number];
    const lines = (to - (bands[band - 1]?.to ?? 0)) * this.trials.length;
    const strength = Math.max(cover / Math.ceil(lines / linesAFrame), 0.02);
    return (
      colour(name) +
      Math.round(255 * strength)
        .toString(16)
        .padStart(2, "0")
    );
  }

  private drawBase(context: CanvasRenderingContext2D): void {
    const run = ++this.run;
    const strokes = bands.map((_, i) => this.strokeOf(i));
    this.drawAxes(context);
    let row = this.trials.length - 1;
    const some = (): void => {
      if (run !== this.run) return;
      let band = -1;
      context.lineWidth = this.trials.length > 500 ? 1 : 1.5;
      for (let n = 0; n < linesAFrame && row >= 0; n++, row--) {
        if (!this.isKept(row)) continue;
        const its = bands.findIndex(({ to }) => row < Math.max(to * this.trials.length, 1));
        if (its !== band) {
          if (band >= 0) context.stroke();
          context.beginPath();
          context.strokeStyle = strokes[its] as string;
          band = its;
        }
        this.addLine(context, row);
      }
      if (band >= 0) context.stroke();
      if (row >= 0 && !drawsAtOnce()) requestAnimationFrame(some);
    };
    do some();
    while (row >= 0 && drawsAtOnce());
  }

  private drawAxes(context: CanvasRenderingContext2D): void {
    const space = (this.layers.width - 2 * side) / Math.max(this.axes.length - 1, 1);
    context.lineWidth = 1;
    this.axes.forEach((axis, a) => {
      const x = Math.round(this.x(a)) + 0.5;
      context.strokeStyle = colour("edge");
      context.beginPath();
      context.moveTo(x, top);
      context.lineTo(x, height - bottom);
      context.stroke();
      context.fillStyle = colour("ink");
      context.textAlign = "center";
      // Names of neighbours are in different lines: there is room for two, less at the edges.
      const isEnd = a === 0 || a === this.axes.length - 1;
      const room = Math.min(2 * space - 12, isEnd ? 2 * side : Infinity);
      context.fillText(fitted(context, axis.name, room), x, a % 2 === 0 ? 12 : 26);
    });
  }

  private drawTicks(context: CanvasRenderingContext2D): void {
    const space = (this.layers.width - 2 * side) / Math.max(this.axes.length - 1, 1);
    context.textAlign = "left";
    this.axes.forEach((axis, a) => {
      const last = a === this.axes.length - 1;
      for (const tick of axis.ticks) {
        const text = fitted(context, tick.text, last ? side - 8 : space - 12);
        const width = context.measureText(text).width;
        const y = Math.min(Math.max(this.y(tick.at), top + 6), height - bottom - 2);
        context.fillStyle = `${colour("surface")}cc`;
        context.fillRect(this.x(a) + 3, y - 7, width + 4, 14);
        context.fillStyle = colour("muted");
        context.fillText(text, this.x(a) + 5, y);
      }
    });
  }

  private drawTop(context: CanvasRenderingContext2D): void {
    for (const [name, stretch] of this.stretches) {
      const a = this.axes.findIndex((axis) => axis.name === name);
      if (a < 0) continue;
      context.fillStyle = `${colour("second")}55`;
      const high = this.y(stretch.high);
      context.fillRect(this.x(a) - 7, high - 2, 14, this.y(stretch.low) - high + 4);
    }
    const line = (trial: number, name: string, width: number): void => {
      const row = this.trials.findIndex((one) => one.trial === trial);
      if (row < 0) return;
      context.strokeStyle = colour(name);
      context.lineWidth = width;
      context.beginPath();
      this.addLine(context, row);
      context.stroke();
    };
    this.chosen.forEach((trial, i) => line(trial, chosenColours[i % chosenColours.length] as string, 2.5));
    if (this.pointed > 0) line(this.pointed, "ink", 2);
    this.drawTicks(context);
  }

  // ---- the pointer ----

  private axisAt(event: PointerEvent): Axis | null {
    const a = this.axes.findIndex((_, i) => Math.abs(this.x(i) - event.offsetX) < 12);
    return this.axes[a] ?? null;
  }

  private find(event: PointerEvent): number {
    const span = (this.layers.width - 2 * side) / Math.max(this.axes.length - 1, 1);
    const row = nearestLine(
      this.places,
      this.axes.length,
      (event.offsetX - side) / span,
      (height - bottom - event.offsetY) / (height - top - bottom),
      nearPx / (height - top - bottom),
    );
    return row >= 0 && this.isKept(row) ? (this.trials[row] as Trial).trial : 0;
  }

  private move(event: PointerEvent): void {
    if (this.drag) {
      this.pull(event);
      return;
    }
    this.layers.surface.style.cursor = this.axisAt(event) ? "row-resize" : "";
    const trial = this.find(event);
    if (trial > 0) this.layers.showTip(event, ...this.options.tip(trial));
    else this.layers.hideTip();
    this.point(trial);
  }

  private down(event: PointerEvent): void {
    const axis = event.button === 0 ? this.axisAt(event) : null;
    if (!axis) return;
    event.preventDefault();
    this.layers.surface.setPointerCapture(event.pointerId);
    this.drag = { axis, from: event.offsetY, moved: false };
  }

  private pull(event: PointerEvent): void {
    if (!this.drag) return;
    const { axis, from } = this.drag;
    this.drag.moved ||= Math.abs(event.offsetY - from) > dragPx;
    if (!this.drag.moved) return;
    const ends = [this.placeAt(from), this.placeAt(event.offsetY)];
    this.stretches.set(axis.name, { low: Math.min(...ends), high: Math.max(...ends) });
    this.layers.redrawTop();
  }

  // A click on an axis gives it back as a whole; one on a line chooses the trial.
  private up(event: PointerEvent): void {
    const { drag } = this;
    this.drag = null;
    if (drag?.moved || (drag && this.stretches.delete(drag.axis.name))) this.keep();
    else {
      const trial = this.find(event);
      if (trial > 0) this.options.pick(trial);
    }
  }

  private clear(): void {
    this.stretches.clear();
    this.keep();
  }

  private keep(): void {
    this.all.hidden = this.stretches.size === 0;
    const names = [...this.stretches.keys()];
    setText(this.all, names.length > 0 ? `Show all again (kept by ${names.join(", ")})` : "");
    this.layers.draw();
    if (this.stretches.size === 0) {
      this.options.kept(null);
      return;
    }
    const axes = this.axes.filter((axis) => this.stretches.has(axis.name));
    const stretches = axes.map((axis) => this.stretches.get(axis.name) as Stretch);
    this.options.kept((trial) =>
      axes.every((axis, i) => {
        const place = axis.place(axis.isScore ? trial.score : trial.settings[axis.name]);
        const { low, high } = stretches[i] as Stretch;
        return place >= low - 0.005 && place <= high + 0.005;
      }),
    );
  }
}
