// search_small.ts: a column of a table in a small picture: its histogram, or its most frequent values.

import { h, svg } from "./dom";
import { count, percent, tidy } from "./format";
import type { TableColumn } from "./search_types";

const width = 120;
const height = 30;

// The heights of the bars from 0 to 1. Roots: what is rare is seen, too. Pure.
export function barHeights(counts: number[]): number[] {
  const most = counts.reduce((max, n) => Math.max(max, n), 0);
  return counts.map((n) => (most > 0 ? Math.sqrt(n / most) : 0));
}

function dateText(seconds: number): string {
  return Number.isFinite(seconds) ? new Date(seconds * 1000).toISOString().slice(0, 10) : "";
}

export function rangeText(column: TableColumn): string {
  const { min, max } = column;
  if (typeof min !== "number" || typeof max !== "number") return "";
  const text = column.kind === "date" ? dateText : tidy;
  return `${text(min)} to ${text(max)}${column.unit ? ` ${column.unit}` : ""}`;
}

function histogram(counts: number[], label: string): SVGSVGElement {
  const step = width / counts.length;
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, class: "smallbars", role: "img", "aria-label": label },
    ...barHeights(counts).map((part, i) => {
      const high = part > 0 ? Math.max(part * height, 1) : 0;
      return svg("rect", { x: i * step + 0.5, y: height - high, width: step - 1, height: high });
    }),
  );
}

// What the values are in a few words: the most frequent ones with their shares, or examples.
export function valuesText(column: TableColumn, rows: number): string {
  const { categories, counts, top } = column;
  if (categories && categories.length > 0)
    return categories
      .slice(0, 3)
      .map((name, i) => `${name} ${percent((counts?.[i] ?? 0) / Math.max(rows, 1))}`)
      .join(", ");
  return (top ?? []).slice(0, 3).join(", ");
}

export function smallPicture(column: TableColumn, rows: number): HTMLElement {
  const { histogram: bars } = column;
  const counts = bars ?? column.counts?.slice(0, 20);
  const text = bars ? rangeText(column) : valuesText(column, rows);
  return h(
    "div",
    { class: "smallpicture", title: text },
    counts && counts.length > 1 ? histogram(counts, `${count(counts.length)} bars`) : null,
    h("span", { class: "muted" }, text),
  );
}
