// timeline.ts: who computed what when, a row a worker, drawn on a canvas. Units that had to be leased again
// stand out, by colour and by hatching; those under way are open on the right.

import { fitted, placeTip, startDrawing } from "./canvas";
import { colour, eachFrame, h } from "./dom";
import { clock, duration } from "./format";
import type { Unit } from "./types";

const rowHeight = 22;
const barHeight = 14;
const axisHeight = 22;
const rowsMax = 200;

export interface Span {
  from: number;
  to: number;
}

// Workers by name, and the time that all units span. Pure.
export function arrange(units: Unit[], now: number): { workers: string[]; span: Span } {
  const workers = [...new Set(units.map((unit) => unit.worker))].sort((a, b) =>
    a.localeCompare(b, undefined, { numeric: true }),
  );
  const from = units.reduce((least, unit) => Math.min(least, unit.start), Infinity);
  const to = units.reduce((most, unit) => Math.max(most, unit.end ?? now), -Infinity);
  return { workers, span: units.length > 0 ? { from, to: Math.max(to, from + 0.001) } : { from: 0, to: 1 } };
}

export class Timeline {
  readonly node: HTMLElement;
  private readonly canvas = h("canvas");
  private readonly tip = h("div", { class: "tip", hidden: true });
  private readonly box = h("div", { class: "timeline" }, this.canvas, this.tip);
  private readonly summary = h("p", { class: "muted small" });
  private units: Unit[] = [];
  private now = 0;
  private readonly draw = eachFrame(() => this.drawNow());
  private readonly sizes = new ResizeObserver(() => this.draw());

  constructor() {
    this.node = h(
      "div",
      null,
      h(
        "div",
        { class: "scroller timelinebox", tabindex: 0, role: "region", "aria-label": "Timeline of units" },
        this.box,
      ),
      h(
        "ul",
        { class: "legend" },
        h("li", null, h("span", { class: "swatch unit" }), "a unit of work"),
        h("li", null, h("span", { class: "swatch again" }), "leased again"),
        h("li", null, h("span", { class: "swatch open" }), "under way"),
      ),
      this.summary,
    );
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("mouseleave", () => (this.tip.hidden = true));
    this.sizes.observe(this.box);
  }

  set(units: Unit[], now: number): void {
    this.units = units;
    this.now = now;
    const again = units.filter((unit) => unit.again).length;
    const howMany = again === 0 ? "none was" : again === 1 ? "1 was" : `${again} were`;
    this.summary.textContent =
      units.length === 0
        ? "No unit has been handed out yet."
        : `The last ${units.length} units; ${howMany} leased again.`;
    this.draw();
  }

  get isThere(): boolean {
    return this.units.length > 0;
  }

  repaint(): void {
    this.draw();
  }

  close(): void {
    this.sizes.disconnect();
  }

  private nameWidth(): number {
    return Math.min(this.box.clientWidth * 0.3, 140);
  }

  private drawNow(): void {
    const width = this.box.clientWidth;
    if (width === 0) return;
    const { workers, span } = arrange(this.units, this.now);
    const rows = workers.slice(0, rowsMax);
    const height = Math.max(rows.length, 3) * rowHeight + axisHeight;
    const context = startDrawing(this.canvas, width, height);
    if (!context) return;
    this.drawAxis(context, span, width, height);
    const rowOf = new Map(rows.map((name, i) => [name, i]));
    rows.forEach((name, i) => {
      context.fillStyle = colour("muted");
      context.fillText(fitted(context, name, this.nameWidth() - 8), 0, (i + 0.5) * rowHeight);
    });
    for (const unit of this.units) {
      const row = rowOf.get(unit.worker);
      if (row !== undefined) this.drawUnit(context, unit, row, span, width);
    }
  }

  private x(time: number, span: Span, width: number): number {
    const left = this.nameWidth();
    return left + ((time - span.from) / (span.to - span.from)) * (width - left - 2);
  }

  private drawAxis(context: CanvasRenderingContext2D, span: Span, width: number, height: number): void {
    const marks = Math.max(2, Math.min(6, Math.floor((width - this.nameWidth()) / 90)));
    for (let i = 0; i <= marks; i++) {
      const time = span.from + ((span.to - span.from) * i) / marks;
      const x = this.x(time, span, width);
      context.fillStyle = colour("line");
      context.fillRect(Math.round(x), 0, 1, height - axisHeight);
      context.fillStyle = colour("muted");
      context.textAlign = i === 0 ? "left" : i === marks ? "right" : "center";
      context.fillText(
        span.to - span.from < 20 ? `${(time - span.to).toFixed(1)} s` : clock(time),
        x,
        height - axisHeight / 2,
      );
    }
    context.textAlign = "left";
  }

  private drawUnit(
    context: CanvasRenderingContext2D,
    unit: Unit,
    row: number,
    span: Span,
    width: number,
  ): void {
    const x = this.x(unit.start, span, width);
    const w = Math.max(this.x(unit.end ?? this.now, span, width) - x - 1, 1.5);
    const y = row * rowHeight + (rowHeight - barHeight) / 2;
    context.fillStyle = colour(unit.again ? "warn-bar" : unit.end === null ? "accent-soft" : "accent-bar");
    context.fillRect(x, y, w, barHeight);
    if (unit.again) hatch(context, x, y, w);
    if (unit.end === null) {
      context.strokeStyle = colour("accent");
      context.strokeRect(x + 0.5, y + 0.5, Math.max(w - 1, 1), barHeight - 1);
    }
  }

  private point(event: MouseEvent): void {
    const { workers, span } = arrange(this.units, this.now);
    const width = this.box.clientWidth;
    const name = workers[Math.floor(event.offsetY / rowHeight)];
    const unit = this.units.find(
      (u) =>
        u.worker === name &&
        event.offsetX >= this.x(u.start, span, width) - 1 &&
        event.offsetX <= this.x(u.end ?? this.now, span, width) + 1,
    );
    this.tip.hidden = !unit;
    if (!unit) return;
    const last = unit.first + unit.count - 1;
    this.tip.replaceChildren(
      h("div", { class: "muted" }, unit.worker),
      h(
        "div",
        null,
        `round ${unit.round}, ${unit.count > 1 ? `parts ${unit.first} to ${last}` : `part ${unit.first}`}`,
      ),
      h(
        "div",
        null,
        unit.end === null ? "under way" : duration(unit.end - unit.start),
        unit.again ? ", leased again" : "",
      ),
    );
    placeTip(this.tip, event, width);
  }
}

function hatch(context: CanvasRenderingContext2D, x: number, y: number, w: number): void {
  context.save();
  context.beginPath();
  context.rect(x, y, w, barHeight);
  context.clip();
  context.strokeStyle = colour("surface");
  context.beginPath();
  for (let at = x - barHeight; at < x + w; at += 5) {
    context.moveTo(at, y + barHeight);
    context.lineTo(at + barHeight, y);
  }
  context.stroke();
  context.restore();
}
