// overview_jobs.ts: the jobs of the overview: found, sorted, chosen; those that were chosen are compared or
// deleted together.

import { remove, textOf } from "../api";
import { h, replace, setText } from "../dom";
import type { Fleet } from "../fleet";
import { count, counted, none, percent, rate, value } from "../format";
import {
  aboutOf,
  doneOf,
  inOrder,
  kindNames,
  kindOf,
  passes,
  resultOf,
  resultText,
  sorts,
  speedOf,
  stateRank,
  type JobSort,
} from "../jobs_list";
import type { Frame } from "../page";
import { askWith, busy, button, fillBar, notice, setState } from "../parts";
import { comparedMax } from "../routes";
import { Table, textColumn, type Column } from "../table";
import { may, mayChange, type Job } from "../types";
import { filterFor, rowHeight, select } from "./overview_parts";

function fillJobName(cell: HTMLTableCellElement, job: Job): void {
  let lines = cell.firstElementChild;
  if (!lines) {
    lines = h("div", { class: "jobname" }, h("a"), h("span"));
    cell.append(lines);
  }
  const [link, text] = lines.children as unknown as [HTMLAnchorElement, HTMLElement];
  link.setAttribute("href", `/jobs/${job.id}`);
  setText(link, job.name);
  link.title = job.name;
  // What the name says already is not said again.
  const more = aboutOf(job);
  setText(text, more !== "" && job.name.endsWith(more) ? "" : more);
  text.hidden = text.textContent === "";
}

function fillProgress(cell: HTMLTableCellElement, job: Job): void {
  cell.classList.add("narrow");
  fillBar(cell, doneOf(job), percent(doneOf(job)));
}

const columns: Column<Job>[] = [
  { title: "Job", width: "auto", wraps: true, fill: fillJobName, sort: (job) => job.name },
  {
    title: "State",
    width: "7.5rem",
    phoneWidth: "6.6rem",
    fill: (cell, job) => setState(cell, job.state),
    sort: (job) => stateRank(job.state),
  },
  {
    title: "Progress",
    width: "15%",
    phoneWidth: "5.7rem",
    fill: fillProgress,
    sort: doneOf,
    kind: "number",
    hide: "small",
  },
  {
    title: "Host",
    width: "12%",
    fill: textColumn((job) => job.host || none),
    sort: (job) => job.host,
    hide: "tablet",
  },
  {
    title: "Workers",
    width: "5.5rem",
    kind: "number",
    fill: textColumn((job) => count(job.workers)),
    sort: (job) => job.workers,
    hide: "phone",
  },
  {
    title: "Samples/s",
    width: "7rem",
    kind: "number",
    hint: "Samples that are learned from in a second; of an agent, steps that are played.",
    fill: textColumn((job) => rate(speedOf(job))),
    sort: speedOf,
    hide: "tablet",
  },
  {
    title: "Loss",
    width: "6rem",
    kind: "number",
    fill: textColumn((job) => value(job.progress.loss)),
    sort: (job) => job.progress.loss ?? Infinity,
    hide: "phone",
  },
  {
    title: "Result",
    width: "9.5rem",
    kind: "number",
    hint:
      "Of a training, on held-out samples where there are any; of a search, its model's on the test rows; of an " +
      "agent, the mean of up to 100 episodes.",
    fill: textColumn(resultText),
    sort: resultOf,
    hide: "tablet",
  },
];

export class JobsCard {
  readonly node: HTMLElement;
  private readonly chosen = new Set<number>();
  private shown: Job[] = [];
  private readonly title = h("h2", null, "Jobs");
  private readonly older: HTMLButtonElement;
  private readonly filter;
  private readonly kind: HTMLSelectElement;
  private readonly sort: HTMLSelectElement;
  private readonly table: Table<Job>;
  private readonly said = h("span", { role: "status" });
  private readonly compare = h("a", { class: "button plain small" }, "Compare");
  private readonly drop: HTMLButtonElement;
  private readonly actions: HTMLElement;
  private readonly failures = h("div", { class: "error", role: "alert", hidden: true });

  constructor(
    private readonly frame: Frame,
    private readonly fleet: () => Fleet,
    private readonly changed: () => void,
  ) {
    this.filter = filterFor("jobs", ["waiting", "running", "stopped", "finished", "failed"], changed);
    this.kind = select("Kind of jobs", [["", "All kinds"], ...Object.entries(kindNames)], changed);
    this.sort = select("Order of jobs", Object.entries(sorts), () => {
      this.table.sortOn(-1); // instead of by a column
      changed();
    });
    this.filter.node.append(this.kind, this.sort);
    this.table = new Table<Job>({
      label: "Jobs",
      empty: "No job to show.",
      rowHeight,
      columns: [{ title: "Choose", isTitleAway: true, width: "2.9rem", fill: this.fillChoice }, ...columns],
      key: (job) => job.id,
      rowClass: (job) => (this.chosen.has(job.id) ? "pointed" : ""),
      control: "input[type=checkbox]",
    });
    this.older = button("Show older jobs", "plain", () => void busy(this.older, () => fleet().fetchOlder()));
    this.older.hidden = true;
    this.drop = button("Delete", "danger", () => void busy(this.drop, () => this.deleteChosen()));
    this.drop.classList.add("small");
    this.actions = h(
      "div",
      { class: "row chosen", hidden: true },
      this.said,
      this.compare,
      may(frame.server.role, "host") && this.drop,
      h(
        "button",
        { type: "button", class: "link small", onclick: () => this.chooseAll() },
        "Choose all that are shown",
      ),
      h("button", { type: "button", class: "link small", onclick: () => this.chooseNone() }, "Choose none"),
    );
    this.node = h(
      "section",
      { class: "card" },
      h("div", { class: "cardhead" }, this.title, this.filter.node),
      this.actions,
      this.failures,
      this.table.node,
      this.older,
    );
  }

  draw(): void {
    const { jobs, next } = this.fleet();
    const filter = { ...this.filter.values(), kind: this.kind.value };
    const passed = [...jobs.values()].filter((job) => passes(job, filter));
    this.shown = inOrder(passed, this.sort.value as JobSort);
    for (const id of this.chosen) if (!jobs.has(id)) this.chosen.delete(id);
    this.table.set(this.shown, jobs.size > 0 ? "No job passes the filter." : "No job to show.");
    setText(this.title, `Jobs (${count(this.shown.length)})`);
    this.older.hidden = next === null;
    this.drawChosen();
  }

  private drawChosen(): void {
    const jobs = this.chosenJobs();
    const trainings = jobs.filter((job) => kindOf(job) === "train");
    this.actions.hidden = jobs.length === 0;
    setText(this.said, `${counted(jobs.length, "job is", "jobs are")} chosen.`);
    const ids = trainings.slice(0, comparedMax).map((job) => job.id);
    this.compare.hidden = trainings.length === 0;
    this.compare.href = `/compare?jobs=${ids.join(",")}`;
    setText(this.compare, `Compare ${counted(ids.length, "training")}`);
    this.drop.hidden = !jobs.some((job) => mayChange(this.frame.server, job));
    setText(this.drop, `Delete ${counted(jobs.length, "job")}`);
  }

  private chosenJobs(): Job[] {
    return [...this.chosen].flatMap((id) => this.fleet().jobs.get(id) ?? []).sort((a, b) => a.id - b.id);
  }

  private readonly fillChoice = (cell: HTMLTableCellElement, job: Job): void => {
    let box = cell.firstElementChild as HTMLInputElement | null;
    if (!box) {
      box = h("input", { type: "checkbox" });
      const { id } = job; // a row is of one job for as long as it is there
      box.addEventListener("change", (event) => {
        if ((event.target as HTMLInputElement).checked) this.chosen.add(id);
        else this.chosen.delete(id);
        this.changed();
      });
      cell.append(box);
    }
    box.checked = this.chosen.has(job.id);
    box.setAttribute("aria-label", `Choose ${job.name}`);
  };

  private chooseAll(): void {
    for (const job of this.shown) this.chosen.add(job.id);
    this.changed();
  }

  private chooseNone(): void {
    this.chosen.clear();
    this.changed();
  }

  // One after the other. What cannot be deleted stays chosen, and is told with its reason.
  private async deleteChosen(): Promise<void> {
    const jobs = this.chosenJobs();
    const names = h("ul", { class: "points names" }, ...jobs.map((job) => h("li", null, job.name)));
    const what = h("p", null, "Models, curves and logs go with them. This cannot be undone.");
    const title = `Delete ${counted(jobs.length, "job")}?`;
    if (!(await askWith(title, "Delete", "danger", [names, what]))) return;
    const failed: [Job, string][] = [];
    for (const job of jobs) {
      try {
        await remove(`/jobs/${job.id}`);
        this.chosen.delete(job.id);
        this.fleet().jobs.delete(job.id);
        this.changed();
      } catch (thrown) {
        failed.push([job, textOf(thrown)]);
      }
    }
    const done = jobs.length - failed.length;
    if (done > 0) notice(`${counted(done, "job is", "jobs are")} deleted.`);
    this.failures.hidden = failed.length === 0;
    replace(
      this.failures,
      h("p", null, `${counted(failed.length, "job was", "jobs were")} not deleted:`),
      h("ul", { class: "points" }, ...failed.map(([job, why]) => h("li", null, `${job.name}: ${why}`))),
    );
  }
}
