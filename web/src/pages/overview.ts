// overview.ts: everything at a glance: counts, throughput, jobs, workers, who contributed.

import { agentAbout, agentOf, agentResult, agentShare, agentSpecOf } from "../agent_spec";
import { Chart } from "../chart";
import { eachFrame, h, setText } from "../dom";
import { Fleet, throughput } from "../fleet";
import { bytes, count, duration, lag, none, percent, rate, short, value } from "../format";
import { shareDone } from "../job_shape";
import type { Frame, Page } from "../page";
import { busy, button, card, fillBar, part, setState, shareColumn } from "../parts";
import { Table, textColumn, type Column } from "../table";
import { may, type Contribution, type Job, type Worker } from "../types";

const rowHeight = 44;

interface Filter {
  node: HTMLElement;
  matches(state: string, ...texts: (string | null)[]): boolean;
}

function filterFor(what: string, states: string[], changed: () => void): Filter {
  const text = h("input", {
    type: "search",
    placeholder: `Find ${what}`,
    "aria-label": `Find ${what} by text`,
    oninput: changed,
  });
  const state = h(
    "select",
    { "aria-label": `State of ${what}`, onchange: changed },
    h("option", { value: "" }, "All states"),
  );
  for (const name of states) state.append(h("option", { value: name }, name));
  return {
    node: h("div", { class: "filter" }, text, state),
    matches(itsState, ...texts) {
      if (state.value && state.value !== itsState) return false;
      const wanted = text.value.trim().toLowerCase();
      return wanted === "" || texts.some((t) => t !== null && t.toLowerCase().includes(wanted));
    },
  };
}

// A search tells of trials, an agent of steps, a training of rounds.
function done(job: Job): number {
  if (job.kind === "agent") return agentShare(job);
  return job.kind === "search" ? shareDone(job) : part(job.progress);
}

function speedOf(job: Job): number {
  if (job.kind === "agent") return job.state === "running" ? agentOf(job).steps_per_second : 0;
  return job.progress.samples_per_s;
}

// In small letters below the name.
function about(job: Job): string {
  if (job.kind === "agent") return agentAbout(agentSpecOf(job));
  if (!job.spec.data) return "";
  return job.kind === "search" ? `search on ${job.spec.data}` : `on ${job.spec.data}`;
}

function fillJobName(cell: HTMLTableCellElement, job: Job): void {
  let lines = cell.firstElementChild;
  if (!lines) {
    lines = h("div", { class: "jobname" }, h("a"), h("span"));
    cell.append(lines);
  }
  const [link, text] = lines.children as unknown as [HTMLAnchorElement, HTMLElement];
  link.setAttribute("href", `/jobs/${job.id}`);
  setText(link, job.name);
  // What the name says already is not said again.
  const more = about(job);
  setText(text, more !== "" && job.name.endsWith(more) ? "" : more);
  text.hidden = text.textContent === "";
}

function fillProgress(cell: HTMLTableCellElement, job: Job): void {
  cell.classList.add("narrow");
  fillBar(cell, done(job), percent(done(job)));
}

function resultOf(job: Job): number {
  const { agent, search, progress } = job;
  const result = agent
    ? (agent.score ?? agent.return_mean)
    : (search?.best_score ?? progress.held_out_metric ?? progress.metric);
  return result ?? -Infinity;
}

function fillLink(cell: HTMLTableCellElement, text: string, path: string): void {
  let link = cell.firstElementChild as HTMLAnchorElement | null;
  if (!link) {
    link = h("a");
    cell.append(link);
  }
  link.setAttribute("href", path);
  setText(link, text);
}

function jobMetric(job: Job): string {
  if (job.kind === "agent") return agentResult(agentOf(job)) || none;
  if (job.search) return job.search.best > 0 ? `${value(job.search.best_score)} ${job.search.metric}` : none;
  const { metric_name, held_out_metric, metric } = job.progress;
  const shown = held_out_metric ?? metric;
  return shown === null ? none : `${value(shown)}${metric_name ? ` ${metric_name}` : ""}`;
}

const jobColumns: Column<Job>[] = [
  {
    title: "Job",
    width: "auto",
    fill: fillJobName,
    sort: (job) => job.name,
  },
  {
    title: "State",
    width: "7.5rem",
    phoneWidth: "6.6rem",
    fill: (cell, job) => setState(cell, job.state),
    sort: (job) => job.state,
  },
  {
    title: "Progress",
    width: "16%",
    phoneWidth: "5.6rem",
    fill: fillProgress,
    sort: done,
    kind: "number",
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
    width: "6.5rem",
    kind: "number",
    hint: "Of an agent: steps",
    fill: textColumn((job) => rate(speedOf(job))),
    sort: speedOf,
    hide: "tablet",
  },
  {
    title: "Loss",
    width: "5.5rem",
    kind: "number",
    fill: textColumn((job) => value(job.progress.loss)),
    sort: (job) => job.progress.loss ?? Infinity,
    hide: "phone",
  },
  {
    title: "Result",
    width: "9.5rem",
    kind: "number",
    hint: "Of held-out samples where there are any; of an agent, the mean of up to 100 episodes",
    fill: textColumn(jobMetric),
    sort: resultOf,
    hide: "tablet",
  },
];

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
  { title: "Worker", width: "auto", fill: fillWorkerName, sort: (worker) => worker.name },
  {
    title: "State",
    width: "8.4rem",
    phoneWidth: "7.8rem",
    fill: (cell, worker) => setState(cell, worker.state),
    sort: (worker) => worker.state,
  },
  { title: "Job", width: "26%", fill: fillWorkerJob, sort: (worker) => worker.job_name ?? "", hide: "phone" },
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
  },
  {
    title: "Lag",
    width: "5.5rem",
    kind: "number",
    fill: textColumn((worker) => lag(worker.lag_s)),
    sort: (worker) => worker.lag_s,
    hide: "phone",
    hint: "Since it was last heard",
  },
];

type Shared = Contribution & { share: number };

const contributionColumns: Column<Shared>[] = [
  { title: "Worker", width: "auto", fill: textColumn((row) => row.worker), sort: (row) => row.worker },
  {
    title: "Samples",
    width: "7rem",
    phoneWidth: "5.8rem",
    kind: "number",
    fill: textColumn((row) => short(row.samples)),
    sort: (row) => row.samples,
  },
  shareColumn("26%", (row) => row.share),
  {
    title: "Units",
    width: "6rem",
    kind: "number",
    fill: textColumn((row) => short(row.units)),
    sort: (row) => row.units,
    hide: "phone",
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
  const jobsTable = new Table<Job>({
    label: "Jobs",
    empty: "No job to show.",
    rowHeight,
    columns: jobColumns,
    key: (job) => job.id,
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
  const jobFilter = filterFor("jobs", ["waiting", "running", "stopped", "finished", "failed"], redraw);
  const workerFilter = filterFor("workers", ["idle", "fetching", "computing", "paused"], redraw);
  const jobsTitle = h("h2", null, "Jobs");
  const workersTitle = h("h2", { id: "workers" }, "Workers");
  const moreWorkers = h("p", { class: "muted small", hidden: true });
  const older = button("Show older jobs", "plain", () => void busy(older, () => fleet.fetchOlder()));
  older.hidden = true;

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
    const jobs = [...fleet.jobs.values()]
      .filter((job) => jobFilter.matches(job.state, job.name, job.host, about(job), String(job.id)))
      .sort((a, b) => b.id - a.id);
    jobsTable.set(jobs);
    setText(jobsTitle, `Jobs (${count(jobs.length)})`);
    older.hidden = fleet.next === null;
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
      h(
        "section",
        { class: "card" },
        h("div", { class: "cardhead" }, jobsTitle, jobFilter.node),
        jobsTable.node,
        older,
      ),
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
