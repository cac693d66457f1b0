// agent_draw.ts: pictures of environments on a canvas, sharp on every screen, in the colours of the style
// sheet.

import { colour } from "./dom";
import { fitView } from "./agent_picture";
import type { Ink, Picture, Shape } from "./agent_types";

export type Palette = Record<Ink, string>;

// Asked for when it may have changed, not for every picture.
export function palette(): Palette {
  return {
    line: colour("muted"),
    body: colour("accent-bar"),
    accent: colour("second"),
    goal: colour("good"),
    faint: colour("line"),
  };
}

const penMin = 1.25; // of the page's pixels

function outline(context: CanvasRenderingContext2D, points: number[]): void {
  context.beginPath();
  for (let i = 0; i + 1 < points.length; i += 2) context.lineTo(points[i] as number, points[i + 1] as number);
}

function drawShape(
  context: CanvasRenderingContext2D,
  shape: Shape,
  inks: Palette,
  scale: number,
  place: (points: number[]) => number[],
): void {
  const points = place(shape.points);
  const ink = inks[shape.ink] ?? inks.line;
  context.fillStyle = context.strokeStyle = ink;
  if (shape.form === "disc") {
    context.beginPath();
    context.arc(points[0] ?? 0, points[1] ?? 0, Math.max((shape.width ?? 0) * scale, 0.5), 0, 2 * Math.PI);
    context.fill();
    return;
  }
  outline(context, points);
  if (shape.form === "area") {
    context.closePath();
    context.fill();
    return;
  }
  context.lineWidth = Math.max((shape.width ?? 0) * scale, penMin);
  context.stroke();
}

// `shapes`: those of the picture, or what lies between it and the next.
export function drawPicture(
  canvas: HTMLCanvasElement,
  view: Picture["view"],
  shapes: Shape[],
  inks: Palette,
): void {
  const ratio = devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  const context = canvas.getContext("2d");
  if (!context || width === 0 || height === 0) return;
  // A canvas that is given its size, even the same one, is made anew.
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.lineCap = context.lineJoin = "round";
  const { scale, dx, dy } = fitView(view, width, height);
  const place = (points: number[]): number[] =>
    points.map((p, i) => (i % 2 === 0 ? dx + p * scale : dy - p * scale));
  for (const shape of shapes) drawShape(context, shape, inks, scale, place);
}
