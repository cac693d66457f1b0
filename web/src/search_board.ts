// search_board.ts: the leaderboard: all trials, the best first, to be sorted, filtered and chosen.

import { eachFrame, h, newId, setText } from "./dom";
import { count, figure, lag, none, short } from "./format";
import { filterOf, sortScore, type Test, type Trial } from "./search_trials";
import { Table, textColumn } from "./table";

const rowHeight = 40;
const chosenMax = 8;
const firstText = "Trials appear here, the best first, as soon as a machine has trained one.";

export interface BoardOptions {
  chosen(trials: number[]): void;
  hover(trial: number): void;
  filtered(trials: Trial[]): void; // those that are shown
}

export interface Judging {
  metric: string; // as people write it
  isHigher: boolean; // better
  isStaged: boolean; // trials begin with few epochs, and only the best go on
  isFinished: boolean; // the search: there is no further stage than the last that was reached
}

// last: the stage after which nothing comes, where that is known.
function stateText(trial: Trial, last: number): string {
  if (trial.failed) return "failed";
  return trial.over || trial.rung >= last ? "done" : `stage ${trial.rung + 1}`;
}

function lastStage(trials: Trial[], { isStaged, isFinished }: Judging): number {
  if (!isStaged) return 0;
  return isFinished ? trials.reduce((most, trial) => Math.max(most, trial.rung), 0) : Infinity;
}

function judgingText({ metric, isHigher, isStaged }: Judging): string {
  const better = isHigher ? "higher" : "lower";
  const scores = `Scores are ${metric} on rows that were held out: the ${better} the better.`;
  const stages = " Trials begin with a few epochs, stage 1; the best third of a stage goes on to the next.";
  return isStaged ? scores + stages : scores;
}

export class Board {
  readonly node: HTMLElement;
  chosen: number[] = [];
  private ranked: Trial[] = [];
  private ranks = new Map<number, number>();
  private test: Test = () => true;
  private kept: Test | null = null;
  private isHigher = true;
  private last = Infinity;
  private pointed = 0;
  private readonly table: Table<Trial>;
  private readonly help = h(
    "p",
    { class: "hint", id: newId("filter") },
    "A filter has words of settings, or comparisons such as layers=3, weights<10000, score>0.8. " +
      "Trials with a tick show their settings and learning curves below; arrow keys go from trial to trial.",
  );
  private readonly about = h("p", { class: "hint", hidden: true });
  private readonly filter = h("input", {
    type: "search",
    placeholder: "width>64 relu",
    "aria-label": "Filter trials",
    "aria-describedby": this.help.id,
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
      this.about,
      this.help,
      this.table.node,
      this.shown,
    );
  }

  set(ranked: Trial[], judging: Judging): void {
    this.ranked = ranked;
    this.isHigher = judging.isHigher;
    this.last = lastStage(ranked, judging);
    setText(this.about, judgingText(judging));
    this.about.hidden = ranked.length === 0;
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
    this.table.set(rows, this.ranked.length > 0 ? "No trial passes the filter." : firstText);
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
      control: "input[type=checkbox]",
      empty: firstText,
      rowHeight,
      key: (trial) => trial.trial,
      rowClass: (trial) =>
        `${trial.failed ? "gone" : ""}${trial.trial === this.pointed ? " pointed" : ""}`.trim(),
      columns: [
        {
          title: "Choose",
          isTitleAway: true,
          width: "3.2rem",
          phoneWidth: "2.6rem",
          fill: (cell, trial) => this.fillChoice(cell, trial),
        },
        {
          title: "Rank",
          width: "4.2rem",
          kind: "number",
          fill: textColumn((trial) => String(this.ranks.get(trial.trial) ?? none)),
          hide: "phone",
        },
        {
          title: "Score",
          width: "5.6rem",
          phoneWidth: "4.8rem",
          kind: "number",
          hint: "Of the metric, on held-out rows",
          fill: textColumn((trial) => figure(trial.score)),
          sort: (trial) => sortScore(trial, this.isHigher),
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
          hint: "Of computing, all its stages together",
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
          hint: "Done: more epochs would change nothing, or there are none to come",
          fill: textColumn((trial) => stateText(trial, this.last)),
          sort: (trial) => stateText(trial, this.last),
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
