// drawing.ts: the drawing of a network: a box a layer, with its shape and weights, and the ways between them.

import { svg } from "./dom";
import { short } from "./format";
import { layOut, type Edge, type Layout, type Place } from "./layers";
import type { Layer } from "./types";

const boxWidth = 168;
const boxHeight = 44;
const gapX = 18;
const gapY = 18;
const laneWidth = 14;
const margin = 4;

interface Point {
  x: number;
  y: number;
}

function middle(place: Place): Point {
  return {
    x: margin + place.column * (boxWidth + gapX) + boxWidth / 2,
    y: margin + place.row * (boxHeight + gapY) + boxHeight / 2,
  };
}

function right(columns: number): number {
  return margin + columns * (boxWidth + gapX) - gapX;
}

// How many columns there are in the rows that an edge passes.
function columnsBetween(edge: Edge, layout: Layout): number {
  const first = (layout.places[edge.from] as Place).row;
  const last = (layout.places[edge.to] as Place).row;
  return layout.places.reduce(
    (most, place) => (place.row >= first && place.row <= last ? Math.max(most, place.column + 1) : most),
    1,
  );
}

function pathOf(edge: Edge, layout: Layout): string {
  const a = middle(layout.places[edge.from] as Place);
  const b = middle(layout.places[edge.to] as Place);
  const top = a.y + boxHeight / 2;
  const bottom = b.y - boxHeight / 2;
  if (edge.way.kind === "lane") {
    // Out of the right side of one box, a little low, into the right side of the other, a little high.
    const x = right(columnsBetween(edge, layout)) + (edge.way.lane + 1) * laneWidth;
    const y1 = a.y + 8;
    const y2 = b.y - 8;
    const r = 8;
    return (
      `M${a.x + boxWidth / 2} ${y1}H${x - r}Q${x} ${y1} ${x} ${y1 + r}` +
      `V${y2 - r}Q${x} ${y2} ${x - r} ${y2}H${b.x + boxWidth / 2 + 4}`
    );
  }
  if (a.x === b.x) return `M${a.x} ${top}V${bottom - 3}`;
  const x = edge.way.kind === "column" ? middle({ row: 0, column: edge.way.column }).x : b.x;
  if (x === b.x) return `M${a.x} ${top}C${a.x} ${top + gapY} ${x} ${top} ${x} ${top + gapY}V${bottom - 3}`;
  return `M${a.x} ${top}V${bottom - gapY}C${a.x} ${bottom} ${b.x} ${bottom - gapY} ${b.x} ${bottom - 3}`;
}

function box(layer: Layer, place: Place, chosen: (line: number) => void): SVGGElement {
  const { x, y } = middle(place);
  const text = layer.name ? layer.text.trim().replace(/^[^\s:]+:\s*/, "") : layer.text.trim();
  const [word = "", ...rest] = text.split(/\s+/);
  const what = rest.join(" ");
  const below = [layer.shape, layer.weights > 0 ? `${short(layer.weights)} weights` : ""]
    .filter(Boolean)
    .join(" · ");
  const label = `Line ${layer.line}: ${layer.text}, ${below}`;
  return svg(
    "g",
    {
      class: `layer kind-${kindOf(word)}`,
      transform: `translate(${x - boxWidth / 2} ${y - boxHeight / 2})`,
      onclick: () => chosen(layer.line),
    },
    svg("title", null, label),
    svg("rect", { width: boxWidth, height: boxHeight, rx: 8 }),
    svg("rect", { class: "edge", width: 4, height: boxHeight - 16, x: 6, y: 8, rx: 2 }),
    svg(
      "text",
      { x: 18, y: 18 },
      svg("tspan", { class: "word" }, word),
      what ? ` ${cut(what, 18 - word.length)}` : "",
    ),
    svg("text", { x: 18, y: 34, class: "below" }, cut(below, 24)),
  );
}

function kindOf(word: string): string {
  if (["conv", "dense", "embed", "lookup", "rnn", "lstm", "gru"].includes(word)) return "weights";
  if (["input", "loss"].includes(word)) return "end";
  if (["add", "concat"].includes(word)) return "join";
  return "plain";
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, Math.max(length - 1, 1))}…`;
}

// `chosen` is called with the line of a box that was clicked.
export function drawLayers(layers: Layer[], chosen: (line: number) => void): SVGSVGElement {
  const layout = layOut(layers);
  const width = right(layout.columns) + (layout.lanes > 0 ? (layout.lanes + 1) * laneWidth : 0) + margin;
  const height = margin * 2 + layout.rows * (boxHeight + gapY) - gapY;
  const spoken = layers.map((layer) => `${layer.text}, ${layer.shape}`).join("; ");
  const picture = svg(
    "svg",
    {
      class: "network",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": `Network of ${layers.length} layers: ${spoken}`,
    },
    svg(
      "defs",
      null,
      svg(
        "marker",
        {
          id: "arrow",
          viewBox: "0 0 8 8",
          refX: 6,
          refY: 4,
          markerWidth: 6,
          markerHeight: 6,
          orient: "auto",
        },
        svg("path", { class: "head", d: "M0 0L8 4L0 8Z" }),
      ),
    ),
  );
  for (const edge of layout.edges) {
    picture.append(svg("path", { class: "way", d: pathOf(edge, layout), "marker-end": "url(#arrow)" }));
  }
  layers.forEach((layer, i) => picture.append(box(layer, layout.places[i] as Place, chosen)));
  return picture;
}
