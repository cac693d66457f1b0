// chart.ts: a live curve, drawn by uPlot in the colours of the style sheet.

import uPlot from "uplot";
import { colour, eachFrame, h } from "./dom";
import { clock, tidy, value } from "./format";

export interface Series {
  label: string;
  colour: string; // a name of the style sheet
  faint?: boolean; // behind the others, without a place in the legend
  points?: boolean;
  fill?: boolean;
  edge?: boolean; // of a band, which is drawn instead of it
  lone?: boolean; // points, with no line from one to the next
}

export interface Band {
  between: [above: number, below: number]; // places in the list of series
  colour: string;
  label: string;
}

// What x counts. Rounds when nothing is said.
export interface XAxis {
  name: string;
  mark?(x: number): string; // at the axis
  head?(x: number): string; // above the values under the pointer
  steps?: number[]; // ways from mark to mark
}

export interface ChartOptions {
  label: string; // what it shows, for who cannot see it
  time?: boolean; // x is seconds since 1970
  height: number;
  series: Series[];
  show?(v: number): string;
  fromZero?: boolean;
  xName?: string; // what x counts; rounds when nothing is said
  bands?: Band[];
  legend?: boolean; // also where there is one series only
  pick?(x: number): void; // a click
}

// Each series has its own x: [xs, ys].
export type Curve = [number[], (number | null)[]];

const font = "12px system-ui, sans-serif";
const secondsMin = 60; // that a time axis spans

const redrawAll = new Set<() => void>();

// After a change between light and dark.
export function repaintCharts(): void {
  for (const redraw of redrawAll) redraw();
}

export class Chart {
  readonly node: HTMLElement;
  private plot: uPlot | null = null;
  private curves: Curve[];
  private x: XAxis;
  private level: { at: number; text: string } | null = null;
  private mark: number | null = null;
  private readonly box: HTMLElement;
  private readonly sizes: ResizeObserver;
  private readonly draw = eachFrame(() => this.drawNow());
  private readonly rebuild = (): void => {
    this.plot?.destroy();
    this.plot = null;
    this.draw();
  };

  constructor(private readonly options: ChartOptions) {
    this.curves = options.series.map(() => [[], []]);
    this.x = { name: options.xName ?? "round" };
    this.box = h("div", { class: "chart", role: "img", "aria-label": options.label });
    this.box.style.height = `${options.height}px`;
    this.node = h("div", null, this.box, this.legend());
    this.sizes = new ResizeObserver(() => this.fit());
    this.sizes.observe(this.box);
    redrawAll.add(this.rebuild);
  }

  set(curves: Curve[]): void {
    this.curves = curves;
    this.draw();
  }

  setX(x: XAxis): void {
    this.x = x;
    this.rebuild();
  }

  // A line across, at a height that matters. null: none.
  setLevel(at: number | null, text: string): void {
    if (this.level?.at === at || (at === null && this.level === null)) return;
    this.level = at === null ? null : { at, text };
    this.rebuild();
  }

  // A line upright, at an x that something else shows more of. null: none.
  setMark(x: number | null): void {
    if (this.mark === x) return;
    this.mark = x;
    this.plot?.redraw(false);
  }

  describe(text: string): void {
    this.box.setAttribute("aria-label", `${this.options.label}: ${text}`);
  }

  close(): void {
    redrawAll.delete(this.rebuild);
    this.sizes.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  private legend(): HTMLElement | null {
    const named = this.options.series.filter((series) => !series.faint && !series.edge);
    const bands = this.options.bands ?? [];
    if (named.length + bands.length < 2 && !this.options.legend) return null;
    const list = h("ul", { class: "legend" });
    for (const series of named) {
      const swatch = h("span", { class: series.points ? "swatch round" : "swatch" });
      swatch.style.background = `var(--${series.colour})`;
      list.append(h("li", null, swatch, series.label));
    }
    for (const band of bands) {
      const swatch = h("span", { class: "swatch band" });
      swatch.style.background = `var(--${band.colour})`;
      list.append(h("li", null, swatch, band.label));
    }
    return list;
  }

  private fit(): void {
    if (this.plot && this.box.clientWidth > 0) {
      this.plot.setSize({ width: this.box.clientWidth, height: this.options.height });
    } else this.draw();
  }

  private data(): uPlot.AlignedData {
    const tables = this.curves.map(
      ([xs, ys]) => (this.options.time ? lengthened(xs, ys) : [xs, ys]) as uPlot.AlignedData,
    );
    if (tables.length === 1) return tables[0] as uPlot.AlignedData;
    return uPlot.join(
      tables,
      tables.map(() => [2]),
    ); // 2: what one series lacks is no gap
  }

  private drawNow(): void {
    if (!this.box.isConnected || this.box.clientWidth === 0) return;
    if (this.curves.every(([xs]) => xs.length === 0)) return;
    const data = this.data();
    if (this.plot) this.plot.setData(data);
    else this.plot = new uPlot(this.settings(), data, this.box);
  }

  private settings(): uPlot.Options {
    const { options } = this;
    const axis = (): uPlot.Axis => ({
      stroke: colour("muted"),
      grid: { stroke: colour("line"), width: 1 },
      ticks: { show: false },
      font,
    });
    return {
      width: this.box.clientWidth,
      height: options.height,
      padding: [10, options.time ? 30 : 14, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false } },
      scales: {
        x: { time: options.time ?? false },
        y: {
          range: (_plot, low, high) =>
            rangeOf(...withLevel(low, high, this.level?.at ?? null), options.fromZero ?? false),
        },
      },
      axes: [
        {
          ...axis(),
          space: options.time ? 90 : 60,
          ...(options.time
            ? { size: 32, values: (_plot, splits) => splits.map(clock) }
            : { size: 28, label: this.x.name, labelSize: 18, labelGap: 0, labelFont: font }),
          ...this.marks(),
        },
        {
          ...axis(),
          size: 52,
          space: Math.max(26, options.height / 10),
          values: (_plot, splits) => splits.map(options.show ?? tidy),
        },
      ],
      series: [
        {},
        ...options.series.map((series): uPlot.Series => ({
          label: series.label,
          stroke: series.edge ? "transparent" : colour(series.colour) + (series.faint ? "55" : ""),
          width: series.edge ? 0 : series.faint ? 1 : 2,
          ...(series.lone ? { paths: () => null } : {}),
          spanGaps: !options.time, // where nobody looked for a while, nothing is known
          points: { show: series.points ?? false, size: series.lone ? 9 : 6, fill: colour(series.colour) },
          ...(series.fill ? { fill: `${colour(series.colour)}22` } : {}),
        })),
      ],
      bands: (options.bands ?? []).map((band) => ({
        series: [band.between[0] + 1, band.between[1] + 1],
        fill: `${colour(band.colour)}2e`,
      })),
      hooks: { draw: [(plot) => this.drawLines(plot)], init: [(plot) => this.listen(plot)] },
      plugins: [tooltip(options, () => this.x)],
    };
  }

  private marks(): uPlot.Axis {
    const { mark, steps } = this.x;
    return {
      ...(mark ? { values: (_plot: uPlot, splits: number[]) => splits.map(mark) } : {}),
      ...(steps ? { incrs: steps } : {}),
    };
  }

  private drawLines(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio || 1;
    ctx.save();
    ctx.lineWidth = 1.5 * ratio;
    ctx.setLineDash([6 * ratio, 4 * ratio]);
    if (this.level) {
      const y = plot.valToPos(this.level.at, "y", true);
      ctx.strokeStyle = ctx.fillStyle = colour("good");
      stroke(ctx, bbox.left, y, bbox.left + bbox.width, y);
      ctx.font = `600 ${12 * ratio}px system-ui, sans-serif`;
      ctx.textAlign = "left";
      const isAtTop = y < bbox.top + 20 * ratio;
      ctx.textBaseline = isAtTop ? "top" : "bottom";
      ctx.fillText(this.level.text, bbox.left + 8 * ratio, y + (isAtTop ? 4 : -4) * ratio);
    }
    if (this.mark !== null) {
      const x = Math.min(Math.max(plot.valToPos(this.mark, "x", true), bbox.left), bbox.left + bbox.width);
      ctx.strokeStyle = colour("ink");
      stroke(ctx, x, bbox.top, x, bbox.top + bbox.height);
    }
    ctx.restore();
  }

  // A click, and not the end of choosing a stretch.
  private listen(plot: uPlot): void {
    const { pick } = this.options;
    if (!pick) return;
    let from = 0;
    plot.over.style.cursor = "pointer";
    plot.over.addEventListener("mousedown", (event) => (from = event.clientX));
    plot.over.addEventListener("click", (event) => {
      const left = event.clientX - plot.over.getBoundingClientRect().left;
      if (Math.abs(event.clientX - from) < 4) pick(plot.posToVal(left, "x"));
    });
  }
}

function stroke(ctx: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

function withLevel(
  low: number | null,
  high: number | null,
  level: number | null,
): [low: number | null, high: number | null] {
  if (level === null || low === null || high === null) return [low, high];
  return [Math.min(low, level), Math.max(high, level)];
}

// A short time gets an empty stretch in front.
function lengthened(xs: number[], ys: (number | null)[]): Curve {
  const from = (xs[xs.length - 1] ?? 0) - secondsMin;
  return (xs[0] ?? 0) > from
    ? [
        [from, ...xs],
        [null, ...ys],
      ]
    : [xs, ys];
}

function rangeOf(low: number | null, high: number | null, fromZero: boolean): uPlot.Range.MinMax {
  if (low === null || high === null || !Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
  if (fromZero && high <= 0) return [0, 10];
  const bottom = fromZero ? 0 : low;
  const room = Math.max((high - bottom) * 0.08, Math.abs(high) * 0.002, 1e-6);
  return [fromZero ? 0 : bottom - room, high + room];
}

// The values under the pointer.
function tooltip(options: ChartOptions, axis: () => XAxis): uPlot.Plugin {
  const box = h("div", { class: "tip", hidden: true });
  const show = options.show ?? value;
  return {
    hooks: {
      init: (plot) => {
        plot.over.append(box);
        plot.over.addEventListener("mouseleave", () => (box.hidden = true));
      },
      setCursor: (plot) => {
        const at = plot.cursor.idx;
        const x = at === null || at === undefined ? undefined : plot.data[0][at];
        if (at === null || at === undefined || x === undefined) {
          box.hidden = true;
          return;
        }
        const lines = options.series.flatMap((series, i) => {
          const y = plot.data[i + 1]?.[at];
          return y === null || y === undefined || series.faint || series.edge
            ? []
            : [h("div", null, `${series.label} ${show(y)}`)];
        });
        for (const { between } of options.bands ?? []) {
          const [above, below] = between.map((i) => plot.data[i + 1]?.[at]);
          if (typeof above === "number" && typeof below === "number")
            lines.push(h("div", null, `± ${show((above - below) / 2)}`));
        }
        const { name, head: headOf } = axis();
        const head = options.time ? clock(x) : headOf ? headOf(x) : `${name} ${x}`;
        box.replaceChildren(h("div", { class: "muted" }, head), ...lines);
        box.hidden = lines.length === 0;
        const left = plot.cursor.left ?? 0;
        box.style.left = left > plot.over.clientWidth / 2 ? "" : `${left + 12}px`;
        box.style.right = left > plot.over.clientWidth / 2 ? `${plot.over.clientWidth - left + 12}px` : "";
      },
    },
  };
}
