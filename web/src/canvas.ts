// canvas.ts: what pictures on a canvas share: sharp pixels, texts that fit, and the box beside the pointer.

import { drawsAtOnce } from "./dom";

export const canvasFont = "12px system-ui, sans-serif";

// A cleared canvas of so many of the page's pixels; null where there is nothing to draw with.
export function startDrawing(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D | null {
  const ratio = devicePixelRatio || 1;
  // Chromium prints the drawing itself. Clearing one of the same size is a part of it, and on paper wipes out
  // all that is below; one of another size begins empty.
  if (drawsAtOnce()) canvas.width = 0;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  if (!context) return null;
  context.scale(ratio, ratio);
  context.font = canvasFont;
  context.textBaseline = "middle";
  return context;
}

// The text, cut where it is too wide.
export function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length--;
  return `${text.slice(0, length)}…`;
}

// Beside the pointer, on the side that has more room.
export function placeTip(tip: HTMLElement, event: MouseEvent, width: number): void {
  const right = event.offsetX > width / 2;
  tip.style.left = right ? "" : `${event.offsetX + 12}px`;
  tip.style.right = right ? `${width - event.offsetX + 12}px` : "";
  tip.style.top = `${event.offsetY + 8}px`;
}
