// search_insight.ts: what a search has found out: which settings and columns matter, what the space teaches,
// where the final model errs and what it is made of.

import { h, replace, setText } from "./dom";
import { capital, count, counted, figure, percent } from "./format";
import { linearAxis, rangeOf } from "./search_axes";
import { Plot } from "./search_plot";
import { metricText } from "./search_spec";
import type { Trial } from "./search_trials";
import type { Insight } from "./search_types";

const barsMax = 30;
const classesMax = 40;
const pointsMax = 5000;

// Named bars, the longest first; what is below 0 counts as nothing.
function bars(rows: { name: string; part: number; text: string }[], kind = ""): HTMLElement {
  const most = rows.reduce((max, row) => Math.max(max, row.part), 0) || 1;
  const list = h("ul", { class: `bars ${kind}`.trim() });
  for (const row of rows.slice(0, barsMax)) {
    const inside = h("span");
    inside.style.transform = `scaleX(${Math.max(row.part, 0) / most})`;
    list.append(
      h(
        "li",
        null,
        h("span", { class: "barname", title: row.name }, row.name),
        h("span", { class: "bar", "aria-hidden": "true" }, inside),
        h("span", { class: "figure" }, row.text),
      ),
    );
  }
  return rows.length > barsMax
    ? h("div", null, list, h("p", { class: "muted small" }, `and ${count(rows.length - barsMax)} more`))
    : list;
}

export function lessonText(lesson: string | { text: string }): string {
  const sentence = capital(typeof lesson === "string" ? lesson : lesson.text);
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}

// Rows are what is right, columns what was predicted; the darker the more of the row.
function matrix(confusion: NonNullable<Insight["confusion"]>): HTMLElement {
  const { classes, counts } = confusion;
  const shown = classes.slice(0, classesMax);
  const head = h("tr", null, h("th", { scope: "col" }, "right ↓ predicted →"));
  for (const name of shown) head.append(h("th", { scope: "col", class: "number", title: name }, name));
  const body = h("tbody");
  shown.forEach((name, r) => {
    const row = counts[r] ?? [];
    const all = row.reduce((sum, n) => sum + n, 0) || 1;
    const line = h("tr", null, h("th", { scope: "row", title: name }, name));
    shown.forEach((other, c) => {
      const n = row[c] ?? 0;
      const cell = h("td", { class: r === c ? "number right" : "number" }, count(n));
      cell.style.setProperty("--part", `${Math.round((n / all) * 70)}%`);
      cell.title = `${name} taken for ${other}: ${count(n)}, ${percent(n / all)} of ${name}`;
      line.append(cell);
    });
    body.append(line);
  });
  return h(
    "div",
    { class: "scroller", tabindex: 0, role: "region", "aria-label": "Confusion matrix" },
    h(
      "table",
      { class: "matrix" },
      h("caption", { class: "away" }, "Confusion matrix"),
      h("thead", null, head),
      body,
    ),
    classes.length > classesMax &&
      small(`and ${counted(classes.length - classesMax, "more class", "more classes")}`),
  );
}

function expectedText(score: number, error: number | null | undefined): string {
  return figure(score) + (error ? `\u00a0± ${figure(error)}` : "");
}

function scoresTable(scores: NonNullable<Insight["scores"]>, metric: string): HTMLElement | null {
  const valid = typeof scores.valid === "number" ? { [metric]: scores.valid } : (scores.valid ?? {});
  const test = scores.test ?? {};
  const names = [...new Set([...Object.keys(test), ...Object.keys(valid)])];
  if (names.length === 0) return null;
  const isTested = Object.keys(test).length > 0;
  const expected = scores.estimate ?? null;
  const head = h(
    "tr",
    null,
    h("th", { scope: "col" }, "Metric"),
    h("th", { scope: "col", class: "number" }, "Held out"),
  );
  if (expected !== null) head.append(h("th", { scope: "col", class: "number" }, "Expected"));
  if (isTested) head.append(h("th", { scope: "col", class: "number" }, "Test"));
  const body = names.map((name) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, metricText(name)),
      h("td", { class: "number" }, figure(valid[name])),
      expected !== null && h("td", { class: "number" }, name === metric ? expectedText(expected, scores.estimate_error) : ""),
      isTested && h("td", { class: "number" }, figure(test[name])),
    ),
  );
  const table = h("table", { class: "scores" }, h("thead", null, head), h("tbody", null, ...body));
  const rows = scores.test_rows ? counted(scores.test_rows, "row") : "rows";
  return h(
    "div",
    { class: "stack" },
    h("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": "Scores" }, table),
    expected !== null &&
      small(
        "Scores on held-out rows may be too optimistic, since these rows chose the model. The expected score comes from rows that did not choose, and has its standard error.",
      ),
    isTested && small(`The test is on ${rows} that nothing has learned from or been chosen by.`),
  );
}

function small(text: string): HTMLElement {
  return h("p", { class: "muted small" }, text);
}

function nothing(text: string): HTMLElement {
  return h("p", { class: "empty" }, text);
}

function block(title: string, empty: string): { node: HTMLElement; set(...content: (Node | null)[]): void } {
  const inside = h("div", { class: "stack" }, nothing(empty));
  return {
    node: h("section", { class: "card" }, h("h2", null, title), inside),
    set(...content) {
      const there = content.filter((one): one is Node => one !== null);
      replace(inside, ...(there.length > 0 ? there : [nothing(empty)]));
    },
  };
}

export class InsightView {
  readonly node: HTMLElement;
  private readonly settings = block(
    "What matters of the settings",
    "Comes when the search ends, from 20 trials on.",
  );
  private readonly lessons = block(
    "What the settings teach",
    "Comes when the search ends: what chance alone would not explain, from 20 trials on.",
  );
  private readonly errors = block("Where the model errs", "Comes with the model, when the search ends.");
  private readonly columns = block(
    "What matters of the columns",
    "Comes with the model, when the search ends.",
  );
  private readonly members = block(
    "What the model is made of",
    "When the search ends, the best trials are put together to one model.",
  );
  private readonly residuals = new Plot({
    label: "Predicted and right values",
    height: 280,
    tip: (point) => [`right ${figure(point.x)}`, `predicted ${figure(point.y)}`],
  });
  private readonly about = h("p", { class: "muted small" });

  constructor() {
    this.node = h(
      "div",
      { class: "stack" },
      h("div", { class: "columns" }, this.settings.node, this.lessons.node),
      h("div", { class: "columns" }, this.errors.node, this.columns.node),
      this.members.node,
    );
  }

  set(insight: Insight, metric: string, trial: (number: number) => Trial | undefined): void {
    const importance = insight.importance ?? [];
    this.settings.set(
      importance.length > 0
        ? small("How much of the differences between scores each setting explains on its own.")
        : null,
      importance.length > 0
        ? bars(importance.map(({ setting, share }) => ({ name: setting, part: share, text: percent(share) })))
        : nothing("Too few trials to tell."),
    );
    const lessons = (insight.lessons ?? []).map(lessonText);
    this.lessons.set(
      lessons.length > 0
        ? h("ul", { class: "points" }, ...lessons.map((text) => h("li", null, text)))
        : nothing(insight.lessons_why ? `${capital(insight.lessons_why)}.` : "No setting made more of a difference than chance alone would."),
    );
    this.errors.set(...this.errorParts(insight));
    const columns = (insight.columns ?? []).slice().sort((a, b) => b.importance - a.importance);
    this.columns.set(
      columns.length > 0
        ? small(
            `How much worse the model's ${metricText(metric || "score")} gets when the cells of a column ` +
              "are shuffled among the rows.",
          )
        : null,
      columns.length > 0
        ? bars(columns.map(({ column, importance: part }) => ({ name: column, part, text: figure(part) })))
        : null,
      insight.columns_why ? small(`${capital(insight.columns_why)}.`) : null,
    );
    const members = insight.members ?? [];
    this.members.set(
      insight.scores ? scoresTable(insight.scores, metric || "score") : null,
      members.length > 0 ? this.memberList(members, trial) : null,
    );
  }

  fail(text: string): void {
    for (const one of [this.settings, this.lessons, this.errors, this.columns, this.members])
      one.set(h("p", { class: "error" }, `This could not be fetched: ${text}.`));
  }

  repaint(): void {
    this.residuals.repaint();
  }

  close(): void {
    this.residuals.close();
  }

  private memberList(
    members: NonNullable<Insight["members"]>,
    trial: (number: number) => Trial | undefined,
  ): HTMLElement {
    const sorted = members.slice().sort((a, b) => b.share - a.share);
    setText(
      this.about,
      members.length === 1
        ? "One trial."
        : `${counted(members.length, "trial")}, whose predictions are added up by share.`,
    );
    return h(
      "div",
      { class: "stack" },
      this.about,
      bars(
        sorted.map((member) => {
          const settings = trial(member.trial)?.text;
          const name = `Trial ${member.trial}${settings ? `: ${settings}` : ""}`;
          return { name, part: member.share, text: percent(member.share) };
        }),
        "long",
      ),
    );
  }

  private errorParts(insight: Insight): (Node | null)[] {
    if (insight.confusion && insight.confusion.classes.length > 0)
      return [
        small("Rows that the model did not learn from, by their right class and by the one predicted."),
        matrix(insight.confusion),
      ];
    const pairs = (insight.residuals ?? []).slice(0, pointsMax);
    if (pairs.length === 0) return [null];
    const [low, high] = rangeOf(pairs.flat());
    const span: [number, number] = low < high ? [low, high] : [low - 0.5, high + 0.5];
    this.residuals.set({
      x: linearAxis("right value", ...span, 5),
      y: linearAxis("predicted value", ...span, 5),
      points: pairs.map(([predicted, right]) => ({ x: right, y: predicted, trial: 0 })),
      diagonal: true,
    });
    return [
      small("Rows that the model did not learn from; on the line it would be right."),
      this.residuals.node,
    ];
  }
}
