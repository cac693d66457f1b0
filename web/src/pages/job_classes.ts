// job_classes.ts: how a classifier fares class by class, on the page of its training: what is taken for what
// as a heat map (of many classes the pairs that are confused most), a table of scores, and the samples that
// it is most wrong about.

import { get } from "../api";
import { h, replace, setText, type Child } from "../dom";
import { count, counted, percent, tidy, value } from "../format";
import { explained } from "../help";
import { card } from "../parts";
import { Table, textColumn } from "../table";
import type { ClassScores, Evaluation, WrongSample } from "../types";

const matrixMax = 30; // classes of a map in which one finds something
const wrongsShown = 8; // samples before the others are folded
const valuesShown = 6; // columns of a row before the others are folded
const freshMs = 2000; // an evaluation that is not older is not asked for again

type NumberedClass = ClassScores & { number: number };

const meaning =
  "Precision: of the samples that were said to be of the class, the share that are. Recall: of the samples " +
  "that are of it, the share that were found. F1: one figure for both, their harmonic mean.";

export class JobClasses {
  readonly node: HTMLElement;
  private readonly said = h("p", { class: "muted small" });
  private readonly map = h("div");
  private readonly worst = h("div", { class: "stack" });
  private readonly worstPart = h(
    "div",
    { class: "stack" },
    h("h3", null, "Most wrong"),
    h("p", { class: "muted small" }, "The samples whose right class the model finds least probable."),
    this.worst,
  );
  private readonly table = scoresTable();
  private isClosed = false;
  private timer = 0;
  private askedAt = -freshMs;

  constructor(private readonly path: string) {
    const taken = h("div", { class: "stack" }, h("h3", null, "Confusion matrix"), this.map);
    const title = h("h3", null, explained("Every class", meaning));
    const scores = h("div", { class: "stack" }, title, this.table.node);
    this.node = card(
      "Class by class",
      this.said,
      h("div", { class: "columns" }, taken, scores),
      this.worstPart,
    );
    this.node.hidden = true;
  }

  // There may be a newer one.
  look(): void {
    if (this.timer !== 0 || this.isClosed) return;
    const wait = Math.max(0, this.askedAt + freshMs - performance.now());
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      this.askedAt = performance.now();
      get<Evaluation>(`${this.path}/evaluation`)
        .then((evaluation) => !this.isClosed && this.show(evaluation))
        .catch(() => undefined);
    }, wait);
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
  }

  private show(e: Evaluation): void {
    const where = e.split === "valid" ? "validation" : "test";
    const { precision, recall, f1 } = e.macro;
    setText(
      this.said,
      `On ${counted(e.samples, `${where} sample`)} after epoch ${count(e.epoch)}: accuracy ` +
        `${value(e.accuracy)}; the mean of the classes: precision ${value(precision)}, ` +
        `recall ${value(recall)}, F1 ${value(f1)}.`,
    );
    replace(this.map, confusion(e));
    this.table.set(e.classes.map((one, i) => ({ ...one, number: i + 1 })));
    const wrongs = e.worst.map(wrongSample);
    const rest = wrongs.splice(wrongsShown);
    replace(
      this.worst,
      h("div", { class: "wrongs" }, ...wrongs),
      rest.length > 0 &&
        h("details", null, h("summary", null, `${rest.length} more`), h("div", { class: "wrongs" }, ...rest)),
    );
    this.worstPart.hidden = e.worst.length === 0;
    this.node.hidden = false;
  }
}

function scoresTable(): Table<NumberedClass> {
  const score = (title: string, width: string, key: "precision" | "recall" | "f1") => ({
    title,
    width,
    kind: "number" as const,
    fill: textColumn<NumberedClass>((one) => value(one[key])),
    sort: (one: NumberedClass) => one[key],
  });
  return new Table<NumberedClass>({
    label: "Scores of every class",
    empty: "There are no classes.",
    rowHeight: 36,
    key: (one) => one.number,
    columns: [
      {
        title: "Class",
        width: "auto",
        fill: (cell, one) => {
          setText(cell, `${one.number} ${one.class}`);
          cell.title = one.class; // where it does not fit
        },
        sort: (one) => one.number,
      },
      { ...score("Precision", "6rem", "precision"), hide: "phone" },
      { ...score("Recall", "5.5rem", "recall"), hide: "phone" },
      score("F1", "5.5rem", "f1"),
      {
        title: "Samples",
        width: "6.25rem",
        kind: "number",
        hide: "phone",
        fill: textColumn((one) => count(one.support)),
        sort: (one) => one.support,
      },
    ],
  });
}

// ---- what is taken for what ----

function confusion(e: Evaluation): Child {
  if (e.matrix && e.matrix.length <= matrixMax) return heatMap(e, e.matrix);
  const note = (text: string): HTMLElement => h("p", { class: "muted small" }, text);
  if (!e.confused) return note("Each output is decided for itself: see the table.");
  if (e.confused.length === 0) return note("Nothing is confused.");
  const row = (tag: "th" | "td", cells: string[]): HTMLElement =>
    h("tr", null, ...cells.map((text) => h(tag, tag === "th" ? { scope: "col" } : null, text)));
  const pairs = e.confused.map((pair) => row("td", [pair.label, pair.class, count(pair.count)]));
  const head = row("th", ["It is", "taken for", "how often"]);
  return h("table", { class: "pairs" }, h("thead", null, head), h("tbody", null, ...pairs));
}

function heatMap(e: Evaluation, matrix: number[][]): HTMLElement {
  const name = (i: number): string => e.classes[i]?.class ?? String(i);
  const totals = matrix.map((row) => row.reduce((sum, n) => sum + n, 0));
  const share = (n: number, i: number): number => n / Math.max(totals[i] ?? 0, 1);
  const wrongs = matrix.flatMap((row, i) => row.map((n, j) => (i === j ? 0 : share(n, i))));
  const worst = Math.max(...wrongs, 1e-9);
  const cell = (n: number, i: number, j: number): HTMLElement => {
    const part = share(n, i);
    const of = `${count(n)} of ${count(totals[i] ?? 0)}, ${percent(part)}`;
    const said = `${name(i)}, taken for ${name(j)}: ${of}`;
    const heat = Math.round(i === j ? 100 * part : (100 * part) / worst);
    const look = { class: i === j ? "right" : "wrong", style: `--heat: ${heat}%`, title: said };
    return h("td", look, n > 0 ? count(n) : "");
  };
  const heads = matrix.map((_, j) => h("th", { scope: "col", title: name(j) }, j + 1));
  const rows = matrix.map((row, i) =>
    h(
      "tr",
      null,
      h("th", { scope: "row", title: name(i) }, i + 1, h("span", { class: "name" }, name(i))),
      ...row.map((n, j) => cell(n, i, j)),
    ),
  );
  return h(
    "div",
    { class: "stack" },
    h(
      "div",
      { class: "heatbox", tabindex: 0, role: "region", "aria-label": "Confusion matrix" },
      h(
        "table",
        { class: `heat${matrix.length > 12 ? " many" : ""}` },
        h("caption", { class: "away" }, "One row per true class, one column per predicted class"),
        h("thead", null, h("tr", null, h("td"), ...heads)),
        h("tbody", null, ...rows),
      ),
    ),
    h("p", { class: "muted small" }, "One row per true class, one column per predicted class."),
  );
}

// ---- the worst ----

function wrongSample(one: WrongSample): HTMLElement {
  const values = Object.entries(one.values ?? {});
  const listed = (pairs: [string, number][]): HTMLElement =>
    h("dl", null, ...pairs.map(([name, n]) => h("div", null, h("dt", null, name), h("dd", null, tidy(n)))));
  return h(
    "figure",
    { class: one.image ? "picture" : "" },
    one.image && h("img", { src: one.image, alt: `Sample ${one.sample}: ${one.label}` }),
    values.length > 0 && listed(values.slice(0, valuesShown)),
    values.length > valuesShown &&
      h(
        "details",
        null,
        h("summary", null, counted(values.length - valuesShown, "more column")),
        listed(values.slice(valuesShown)),
      ),
    h(
      "figcaption",
      null,
      h("span", null, `said ${one.class}, ${percent(one.probability)}`),
      h("strong", null, `is ${one.label}, ${percent(one.label_probability)}`),
      h("span", { class: "muted small" }, `sample ${count(one.sample)}`),
    ),
  );
}
