// search_board.ts: the leaderboard: all trials, the best first, to be sorted, filtered and chosen.

import { eachFrame, h, newId, setText } from "./dom";
import { count, figure, lag, none, short } from "./format";
import { filterOf, sortScore, type Test, type Trial } from "./search_trials";
import { Table, textColumn } from "./table";

const rowHeight = 40;
const chosenMax = 8;

export interface BoardOptions {
  chosen(trials: number[]): void;
  hover(trial: number): void;
  filtered(trials: Trial[]): void; // those that are shown
}

function stateText(trial: Trial): string {
  if (trial.failed) return "failed";
  return trial.over ? "done" : `rung ${trial.rung + 1}`;
}

export class Board {
  readonly node: HTMLElement;
  chosen: number[] = [];
  private ranked: Trial[] = [];
  private ranks = new Map<number, number>();
  private test: Test = () => true;
  private kept: Test | null = null;
  private higherIsBetter = true;
  private pointed = 0;
  private readonly table: Table<Trial>;
  private readonly filter = h("input", {
    type: "search",
    id: newId("trials"),
    placeholder: "width>64 relu",
    "aria-label": "Filter trials",
    autocomplete: "off",
    spellcheck: "false",
  });
  private readonly title = h("h2", null, "Leaderboard");
  private readonly shown = h("p", { class: "muted small", role: "status", hidden: true });
  private readonly fill = eachFrame(() => this.fillNow());

  constructor(private readonly options: BoardOptions) {
    this.table = this.makeTable();
    this.filter.addEventListener("input", () => {
      this.test = filterOf(this.filter.value);
      this.fill();
    });
    this.table.node.addEventListener("mouseover", (event) => this.over(event));
    this.table.node.addEventListener("mouseleave", () => this.point(0));
    this.node = h(
      "section",
      { class: "card" },
      h("div", { class: "cardhead" }, this.title, h("div", { class: "filter" }, this.filter)),
      h(
        "p",
        { class: "hint" },
        "A filter has words of settings, or comparisons such as layers=3, weights<10000, score>0.8. " +
          "Trials with a tick show their learning curves.",
      ),
      this.table.node,
      this.shown,
    );
  }

  set(ranked: Trial[], higherIsBetter: boolean): void {
    this.ranked = ranked;
    this.higherIsBetter = higherIsBetter;
    this.ranks = new Map(ranked.map((trial, i) => [trial.trial, i + 1]));
    this.fill();
  }

  // Trials that another view keeps; null: all.
  keep(test: Test | null): void {
    this.kept = test;
    this.fill();
  }

  // Chooses a trial, or no longer. The oldest choice goes where there are too many.
  toggle(trial: number): void {
    const at = this.chosen.indexOf(trial);
    if (at >= 0) this.chosen.splice(at, 1);
    else this.chosen = [...this.chosen, trial].slice(-chosenMax);
    this.table.refresh();
    this.options.chosen(this.chosen);
  }

  // The trial that is pointed at, here or in another view; 0: none.
  mark(pointed: number): void {
    if (pointed === this.pointed) return;
    this.pointed = pointed;
    for (const row of this.table.node.querySelectorAll<HTMLElement>("tr.pointed"))
      row.classList.remove("pointed");
    if (pointed > 0)
      this.table.node.querySelector(`[data-trial="${pointed}"]`)?.closest("tr")?.classList.add("pointed");
  }

  private fillNow(): void {
    const { test, kept } = this;
    const rows = this.ranked.filter((trial) => test(trial) && (!kept || kept(trial)));
    this.table.set(rows);
    setText(this.title, `Leaderboard (${count(this.ranked.length)})`);
    setText(
      this.shown,
      rows.length === this.ranked.length
        ? ""
        : `${count(rows.length)} of ${count(this.ranked.length)} are shown.`,
    );
    this.shown.hidden = rows.length === this.ranked.length;
    this.options.filtered(rows);
  }

  private fillChoice(cell: HTMLTableCellElement, trial: Trial): void {
    let box = cell.firstElementChild as HTMLInputElement | null;
    if (!box) {
      box = h("input", {
        type: "checkbox",
        "aria-label": `Choose trial ${trial.trial}`,
        onchange: () => this.toggle(trial.trial),
      });
      cell.append(box);
      cell.dataset["trial"] = String(trial.trial);
    }
    box.checked = this.chosen.includes(trial.trial);
  }

  private makeTable(): Table<Trial> {
    return new Table<Trial>({
      label: "Trials",
      empty: "No trial to show.",
      rowHeight,
      key: (trial) => trial.trial,
      rowClass: (trial) =>
        `${trial.failed ? "gone" : ""}${trial.trial === this.pointed ? " pointed" : ""}`.trim(),
      columns: [
        {
          title: "",
          width: "3.2rem",
          phoneWidth: "2.6rem",
          fill: (cell, trial) => this.fillChoice(cell, trial),
        },
        {
          title: "Rank",
          width: "4.2rem",
          phoneWidth: "3.4rem",
          kind: "number",
          fill: textColumn((trial) => String(this.ranks.get(trial.trial) ?? none)),
        },
        {
          title: "Score",
          width: "5.6rem",
          phoneWidth: "4.8rem",
          kind: "number",
          hint: "Of the metric, on held-out rows",
          fill: textColumn((trial) => figure(trial.score)),
          sort: (trial) => sortScore(trial, this.higherIsBetter),
        },
        {
          title: "Trial",
          width: "4.8rem",
          phoneWidth: "3.9rem",
          kind: "number",
          fill: textColumn((trial) => String(trial.trial)),
          sort: (trial) => trial.trial,
        },
        {
          title: "Settings",
          width: "auto",
          fill: (cell, trial) => {
            setText(cell, trial.failed ? `${trial.error || "failed"}: ${trial.text}` : trial.text);
            cell.title = cell.textContent ?? "";
          },
        },
        {
          title: "Weights",
          width: "5.4rem",
          kind: "number",
          fill: textColumn((trial) => short(trial.weights)),
          sort: (trial) => trial.weights,
          hide: "phone",
        },
        {
          title: "Time",
          width: "5.2rem",
          kind: "number",
          hint: "Of computing, all its units together",
          fill: textColumn((trial) => lag(trial.seconds)),
          sort: (trial) => trial.seconds,
          hide: "tablet",
        },
        {
          title: "Epochs",
          width: "5rem",
          kind: "number",
          fill: textColumn((trial) => count(trial.epochs)),
          sort: (trial) => trial.epochs,
          hide: "tablet",
        },
        {
          title: "State",
          width: "5rem",
          hint: "Done: more epochs change nothing. Rung: how far it has been promoted",
          fill: textColumn(stateText),
          sort: stateText,
          hide: "tablet",
        },
      ],
    });
  }

  private over(event: Event): void {
    const row = (event.target as Element).closest("tr");
    this.point(Number((row?.cells[0] as HTMLElement | undefined)?.dataset["trial"] ?? 0));
  }

  private point(trial: number): void {
    if (trial !== this.pointed) this.options.hover(trial); // who comes back with mark
  }
}
