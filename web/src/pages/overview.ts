// overview.ts: everything at a glance: counts, throughput, jobs, workers, who contributed.

import { Chart } from "../chart";
import { eachFrame, h, setText } from "../dom";
import { Fleet, throughput } from "../fleet";
import { bytes, clock, count, duration, lag, none, rate, short } from "../format";
import { help } from "../help";
import type { Frame, Page } from "../page";
import { card, setState, shareColumn } from "../parts";
import { Table, textColumn, type Column } from "../table";
import { may, type Contribution, type Worker } from "../types";
import { JobsCard } from "./overview_jobs";
import { filterFor, rowHeight } from "./overview_parts";

function fillLink(cell: HTMLTableCellElement, text: string, path: string): void {
  let link = cell.firstElementChild as HTMLAnchorElement | null;
  if (!link) {
    link = h("a");
    cell.append(link);
  }
  link.setAttribute("href", path);
  setText(link, text);
}

function fillWorkerJob(cell: HTMLTableCellElement, worker: Worker): void {
  if (worker.job === null) {
    setText(cell, worker.text || none);
    cell.title = worker.text;
    return;
  }
  if (!(cell.firstElementChild instanceof HTMLAnchorElement)) cell.replaceChildren();
  fillLink(cell, worker.job_name ?? `job ${worker.job}`, `/jobs/${worker.job}`);
  cell.title = worker.text;
}

function describeWorker(worker: Worker): string {
  const { cores, memory_bytes, kernels, version, address } = worker;
  return `${cores} cores, ${bytes(memory_bytes)}, ${kernels}, shoal ${version}, ${address}`;
}

function fillWorkerName(cell: HTMLTableCellElement, worker: Worker): void {
  setText(cell, worker.name);
  cell.title = describeWorker(worker);
}

const workerColumns: Column<Worker>[] = [
  { title: "Worker", width: "auto", wraps: true, fill: fillWorkerName, sort: (worker) => worker.name },
  {
    title: "State",
    width: "8.4rem",
    phoneWidth: "7.8rem",
    fill: (cell, worker) => {
      setState(cell, worker.state);
      cell.title = worker.text; // why it is paused, where there is no room for the column of jobs
    },
    sort: (worker) => worker.state,
  },
  {
    title: "Job",
    width: "26%",
    wraps: true,
    fill: fillWorkerJob,
    sort: (worker) => worker.job_name ?? "",
    hide: "phone",
  },
  {
    title: "Cores",
    width: "5rem",
    kind: "number",
    fill: textColumn((worker) => `${worker.threads}/${worker.cores}`),
    sort: (worker) => worker.cores,
    hide: "tablet",
    hint: "That it may use, of those it has",
  },
  {
    title: "Speed",
    width: "5.5rem",
    kind: "number",
    fill: textColumn((worker) => short(worker.speed)),
    sort: (worker) => worker.speed,
    hide: "tablet",
    hint: "Batches of LeNet-5 a second, measured when it came",
  },
  {
    title: "Samples/s",
    width: "6.5rem",
    phoneWidth: "6.6rem",
    kind: "number",
    fill: textColumn((worker) => rate(worker.samples_per_s)),
    sort: (worker) => worker.samples_per_s,
    hide: "small",
  },
  {
    title: "Lag",
    width: "5.5rem",
    kind: "number",
    fill: textColumn((worker) => lag(worker.lag_s)),
    sort: (worker) => worker.lag_s,
    hide: "phone",
    hint: help.heard,
  },
];

type Shared = Contribution & { share: number };

const contributionColumns: Column<Shared>[] = [
  {
    title: "Worker",
    width: "auto",
    wraps: true,
    fill: textColumn((row) => row.worker),
    sort: (row) => row.worker,
  },
  {
    title: "Samples",
    width: "7rem",
    phoneWidth: "5.8rem",
    kind: "number",
    fill: textColumn((row) => short(row.samples)),
    sort: (row) => row.samples,
    hide: "small",
  },
  shareColumn("26%", (row) => row.share),
  {
    title: "Units",
    width: "6rem",
    kind: "number",
    fill: textColumn((row) => short(row.units)),
    sort: (row) => row.units,
    hide: "phone",
    hint: help.units,
  },
  {
    title: "Computing",
    width: "8rem",
    kind: "number",
    fill: textColumn((row) => duration(row.seconds)),
    sort: (row) => row.seconds,
    hide: "phone",
  },
];

class Tile {
  private readonly figure = h("span", { class: "figure" }, none);
  private readonly more = h("span", { class: "muted small" });
  readonly node: HTMLElement;
  constructor(label: string) {
    this.node = h("div", { class: "tile" }, h("span", { class: "muted" }, label), this.figure, this.more);
  }
  set(figure: string, more: string): void {
    setText(this.figure, figure);
    setText(this.more, more);
  }
}

export function overviewPage(frame: Frame): Page {
  const running = new Tile("Jobs running");
  const workers = new Tile("Workers here");
  const speed = new Tile("Samples/s");
  const finished = new Tile("Jobs finished");
  const chart = new Chart({
    label: "Samples a second, of all jobs together",
    time: true,
    height: 180,
    fromZero: true,
    show: short,
    series: [{ label: "samples/s", colour: "accent", fill: true }],
  });
  const workersTable = new Table<Worker>({
    label: "Workers",
    empty: "No worker to show. The page Work has the command that makes a machine one.",
    rowHeight,
    columns: workerColumns,
    key: (worker) => worker.id,
    rowClass: (worker) => (worker.lag_s > 10 ? "late" : ""),
  });
  const contributionsTable = new Table<Shared>({
    label: "Contributions",
    empty: "Nobody has computed anything yet.",
    rowHeight,
    columns: contributionColumns,
    key: (row) => row.worker,
  });
  const redraw = eachFrame(draw);
  const jobsCard = new JobsCard(frame, () => fleet, redraw);
  const workerFilter = filterFor("workers", ["idle", "fetching", "computing", "paused"], redraw);
  const workersTitle = h("h2", { id: "workers" }, "Workers");
  const moreWorkers = h("p", { class: "muted small", hidden: true });

  const fleet = new Fleet(frame, redraw);

  function draw(): void {
    const { server } = frame;
    running.set(count(server.jobs.running), `${count(server.jobs.waiting)} waiting for workers`);
    const paused = server.paused > 0 ? `, ${count(server.paused)} paused` : "";
    workers.set(count(server.workers), `${count(server.idle)} idle${paused}`);
    speed.set(short(server.samples_per_s), "all jobs together");
    finished.set(
      count(server.jobs.finished),
      `${count(server.jobs.stopped)} stopped, ${count(server.jobs.failed)} failed`,
    );
    chart.set([[throughput.times.slice(), throughput.values.slice()]]);
    const since = throughput.times[0];
    if (since !== undefined) chart.describe(`since ${clock(since)}, now ${short(server.samples_per_s)}`);
    jobsCard.draw();
    const shown = [...fleet.workers.values()].filter((worker) =>
      workerFilter.matches(worker.state, worker.name, worker.job_name, worker.address, worker.kernels),
    );
    workersTable.set(shown);
    setText(workersTitle, `Workers (${count(shown.length)})`);
    moreWorkers.hidden = fleet.untold === 0;
    setText(moreWorkers, `and ${count(fleet.untold)} more`);
    const total = fleet.contributions.reduce((sum, row) => sum + row.samples, 0);
    contributionsTable.set(
      fleet.contributions.map((row) => ({ ...row, share: row.samples / Math.max(total, 1) })),
    );
  }

  const hosts = may(frame.server.role, "host");
  const actions = h(
    "div",
    { class: "row" },
    hosts && h("a", { class: "button main", href: "/host" }, "Host a training"),
    hosts && h("a", { class: "button plain", href: "/search" }, "Search on a table"),
    hosts && h("a", { class: "button plain", href: "/agent" }, "Train an agent"),
    h("a", { class: "button plain", href: "/work" }, "Lend a machine"),
  );
  draw();
  return {
    title: "Overview",
    node: h(
      "div",
      { class: "page" },
      h(
        "div",
        { class: "pagehead" },
        h(
          "h1",
          { tabindex: -1 },
          frame.server.name && frame.server.name !== "shoal" ? frame.server.name : "Overview",
        ),
        actions,
      ),
      h("div", { class: "tiles" }, running.node, workers.node, speed.node, finished.node),
      card("Throughput", chart.node),
      jobsCard.node,
      h(
        "section",
        { class: "card" },
        h("div", { class: "cardhead" }, workersTitle, workerFilter.node),
        workersTable.node,
        moreWorkers,
      ),
      card("Contributions", contributionsTable.node),
    ),
    close() {
      chart.close();
      fleet.close();
    },
  };
}
