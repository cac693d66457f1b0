// search_plot.ts: points of trials over two axes, on a canvas: thousands cost no more than a picture. A
// line of steps may go through them.

import { colour, h, setText } from "./dom";
import { counted, figure } from "./format";
import { nearestPoint, type Axis } from "./search_axes";
import { chosenColours, Layers, TrialPicture } from "./search_layers";

export interface Point {
  x: number;
  y: number;
  trial: number; // 0: of none
}

export interface PlotData {
  x: Axis;
  y: Axis;
  points: Point[];
  line?: { x: number; y: number }[]; // steps: level, then up or down
  diagonal?: boolean; // where both are alike
  empty?: string | undefined; // what to say where there are no points
}

export interface PlotOptions {
  label: string;
  height: number;
  tip(point: Point): string[];
  pick?(trial: number): void;
  hover?(trial: number): void; // 0: none
}

const left = 52;
const right = 14;
const top = 26;
const bottom = 42;
const nearPx = 14;
const emptyText = "Points appear with the first trials that have a score.";

export class Plot extends TrialPicture {
  readonly node: HTMLElement;
  private data: PlotData | null = null;
  private xs: Float32Array = new Float32Array();
  private ys: Float32Array = new Float32Array();
  protected readonly layers: Layers;
  private readonly note = h("p", { class: "empty" }, emptyText);

  constructor(private readonly options: PlotOptions) {
    super((trial) => options.hover?.(trial));
    this.layers = new Layers(options.label, options.height, {
      base: (context, width, height) => this.drawBase(context, width, height),
      top: (context) => this.drawTop(context),
    });
    this.node = h("div", null, this.layers.node, this.note);
    this.layers.node.hidden = true;
    const { surface } = this.layers;
    surface.addEventListener("pointermove", (event) => this.move(event));
    surface.addEventListener("pointerleave", () => this.point(0));
    surface.addEventListener("click", (event) => {
      const at = this.find(event);
      if (at && at.trial > 0) options.pick?.(at.trial);
    });
  }

  set(data: PlotData): void {
    this.data = data;
    this.layers.node.hidden = data.points.length === 0;
    this.note.hidden = data.points.length > 0;
    setText(this.note, data.empty ?? emptyText);
    const last = data.line?.[data.line.length - 1];
    this.layers.label(
      `${this.options.label}: ${counted(data.points.length, "point")}` +
        (last ? `, the best ${figure(last.y)}` : ""),
    );
    this.layers.draw();
  }

  private place(width: number, height: number): { x(at: number): number; y(at: number): number } {
    return {
      x: (at) => left + at * (width - left - right),
      y: (at) => height - bottom - at * (height - top - bottom),
    };
  }

  private drawBase(context: CanvasRenderingContext2D, width: number, height: number): void {
    if (!this.data) return;
    const { x: xAxis, y: yAxis, points } = this.data;
    const to = this.place(width, height);
    this.drawAxes(context, width, height);
    this.xs = new Float32Array(points.length);
    this.ys = new Float32Array(points.length);
    context.fillStyle = `${colour("accent-bar")}99`;
    const size = points.length > 1000 ? 3 : 5;
    points.forEach((point, i) => {
      this.xs[i] = to.x(xAxis.place(point.x));
      this.ys[i] = to.y(yAxis.place(point.y));
      context.fillRect((this.xs[i] as number) - size / 2, (this.ys[i] as number) - size / 2, size, size);
    });
    if (this.data.diagonal) this.drawDiagonal(context, to);
    if (this.data.line) this.drawLine(context, to, width - right);
  }

  private drawAxes(context: CanvasRenderingContext2D, width: number, height: number): void {
    if (!this.data) return;
    const { x: xAxis, y: yAxis } = this.data;
    const to = this.place(width, height);
    context.strokeStyle = colour("line");
    context.fillStyle = colour("muted");
    context.lineWidth = 1;
    context.beginPath();
    context.textAlign = "right";
    for (const tick of yAxis.ticks) {
      const y = Math.round(to.y(tick.at)) + 0.5;
      context.moveTo(left, y);
      context.lineTo(width - right, y);
      context.fillText(tick.text, left - 8, y);
    }
    context.textAlign = "center";
    let free = 0;
    for (const tick of xAxis.ticks) {
      const x = Math.round(to.x(tick.at)) + 0.5;
      context.moveTo(x, top);
      context.lineTo(x, height - bottom);
      const half = context.measureText(tick.text).width / 2 + 4;
      if (x - half < free) continue;
      free = x + half;
      context.fillText(tick.text, x, height - bottom + 12);
    }
    context.stroke();
    context.fillText(xAxis.name, left + (width - left - right) / 2, height - 9);
    context.textAlign = "left";
    context.fillText(yAxis.name, 4, 9);
  }

  private drawDiagonal(
    context: CanvasRenderingContext2D,
    to: { x(at: number): number; y(at: number): number },
  ): void {
    context.strokeStyle = colour("second");
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(to.x(0), to.y(0));
    context.lineTo(to.x(1), to.y(1));
    context.stroke();
  }

  private drawLine(
    context: CanvasRenderingContext2D,
    to: { x(at: number): number; y(at: number): number },
    end: number,
  ): void {
    if (!this.data?.line || this.data.line.length === 0) return;
    const { x: xAxis, y: yAxis, line } = this.data;
    context.strokeStyle = colour("second");
    context.lineWidth = 2;
    context.beginPath();
    line.forEach((point, i) => {
      const x = to.x(xAxis.place(point.x));
      const y = to.y(yAxis.place(point.y));
      if (i === 0) context.moveTo(x, y);
      else {
        context.lineTo(x, to.y(yAxis.place((line[i - 1] as { y: number }).y)));
        context.lineTo(x, y);
      }
    });
    context.lineTo(end, to.y(yAxis.place((line[line.length - 1] as { y: number }).y)));
    context.stroke();
  }

  private drawTop(context: CanvasRenderingContext2D): void {
    if (!this.data) return;
    const ring = (trial: number, name: string, size: number): void => {
      this.data?.points.forEach((point, i) => {
        if (point.trial !== trial) return;
        context.beginPath();
        context.arc(this.xs[i] as number, this.ys[i] as number, size, 0, 2 * Math.PI);
        context.fillStyle = colour(name);
        context.fill();
        context.strokeStyle = colour("surface");
        context.lineWidth = 1.5;
        context.stroke();
      });
    };
    this.chosen.forEach((trial, i) => ring(trial, chosenColours[i % chosenColours.length] as string, 6));
    if (this.pointed > 0) ring(this.pointed, "ink", 5);
  }

  private find(event: MouseEvent): Point | null {
    const i = nearestPoint(this.xs, this.ys, event.offsetX, event.offsetY, nearPx);
    return this.data?.points[i] ?? null;
  }

  private move(event: PointerEvent): void {
    const at = this.find(event);
    if (at) this.layers.showTip(event, ...this.options.tip(at));
    else this.layers.hideTip();
    this.point(at?.trial ?? 0);
  }
}
