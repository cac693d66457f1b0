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
}

export interface ChartOptions {
  label: string; // what it shows, for who cannot see it
  time?: boolean; // x is seconds since 1970
  height: number;
  series: Series[];
  show?(v: number): string;
  fromZero?: boolean;
  xName?: string; // what x counts; rounds when nothing is said
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
    const named = this.options.series.filter((series) => !series.faint);
    if (named.length < 2) return null;
    const list = h("ul", { class: "legend" });
    for (const series of named) {
      const swatch = h("span", { class: series.points ? "swatch round" : "swatch" });
      swatch.style.background = `var(--${series.colour})`;
      list.append(h("li", null, swatch, series.label));
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
        y: { range: (_plot, low, high) => rangeOf(low, high, options.fromZero ?? false) },
      },
      axes: [
        {
          ...axis(),
          space: options.time ? 90 : 60,
          ...(options.time
            ? { size: 32, values: (_plot, splits) => splits.map(clock) }
            : { size: 28, label: options.xName ?? "round", labelSize: 18, labelGap: 0, labelFont: font }),
        },
        { ...axis(), size: 52, space: 26, values: (_plot, splits) => splits.map(options.show ?? tidy) },
      ],
      series: [
        {},
        ...options.series.map((series): uPlot.Series => ({
          label: series.label,
          stroke: colour(series.colour) + (series.faint ? "55" : ""),
          width: series.faint ? 1 : 2,
          spanGaps: !options.time, // where nobody looked for a while, nothing is known
          points: { show: series.points ?? false, size: 6, fill: colour(series.colour) },
          ...(series.fill ? { fill: `${colour(series.colour)}22` } : {}),
        })),
      ],
      plugins: [tooltip(options)],
    };
  }
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
function tooltip(options: ChartOptions): uPlot.Plugin {
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
          return y === null || y === undefined || series.faint
            ? []
            : [h("div", null, `${series.label} ${show(y)}`)];
        });
        const head = options.time ? clock(x) : `${options.xName ?? "round"} ${x}`;
        box.replaceChildren(h("div", { class: "muted" }, head), ...lines);
        box.hidden = lines.length === 0;
        const left = plot.cursor.left ?? 0;
        box.style.left = left > plot.over.clientWidth / 2 ? "" : `${left + 12}px`;
        box.style.right = left > plot.over.clientWidth / 2 ? `${plot.over.clientWidth - left + 12}px` : "";
      },
    },
  };
}
