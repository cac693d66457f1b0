// job.ts: one job, live: how far it is, its curves, who contributes, what happened, and what one can do
// with it.

import { download, get, post, remove } from "../api";
import { announce, eachFrame, h, replace, setText } from "../dom";
import { Field } from "../fields";
import {
  ago,
  clock,
  count,
  date,
  duration,
  fileName,
  lag,
  none,
  percent,
  rate,
  shellWord,
  short,
  value,
} from "../format";
import { inviteForm } from "../invite";
import { furtherProgress, wholeJob, type JobAsSent } from "../job_shape";
import { Live } from "../live";
import type { Frame, Page } from "../page";
import { ask, Bar, busy, button, card, copyable, fillBar, part, setState } from "../parts";
import { trainCommand } from "../spec";
import { allRejected, auditsText, isGuarded, rejectedText, standingRank, standingText } from "../standing";
import { SwarmPicture } from "../swarm_picture";
import { Table, textColumn } from "../table";
import { onTheme } from "../theme";
import { Timeline } from "../timeline";
import {
  may,
  mayChange,
  type EpochPoint,
  type History,
  type Job,
  type JobWorker,
  type LogLine,
  type RoundPoint,
  type Swarm,
  type Unit,
} from "../types";
import { JobCurves } from "./job_curves";

const logLinesMax = 1000;
const lookEveryMs = 2000; // at the timeline and the swarm

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// The sentence under the name.
function summary(job: Job, now: number): string {
  const { progress } = job;
  const epochs = job.spec.epochs ?? 0;
  const at = epochs > 0 ? `epoch ${Math.min(progress.epoch + 1, epochs)} of ${epochs}, ` : "";
  const where = `${at}round ${count(progress.step)} of ${count(progress.steps)}`;
  switch (job.state) {
    case "waiting":
      return job.reason
        ? `${capital(job.reason)}.`
        : `Waits for ${job.spec.workers_min ?? 1} or more workers.`;
    case "running":
      return capital(progress.eta_s === null ? where : `${where}, about ${duration(progress.eta_s)} to go`);
    case "finished":
      if (!job.ended) return "Finished.";
      if (!job.started) return `Finished ${ago(job.ended, now)}.`;
      return `Finished ${ago(job.ended, now)} after ${duration(job.ended - job.started)}.`;
    default:
      return progress.steps > 0
        ? `${capital(job.reason || job.state)} (${where}).`
        : `${capital(job.reason || job.state)}.`;
  }
}

export class Log {
  readonly node = h("div", {
    class: "log",
    tabindex: 0,
    role: "log",
    "aria-label": "Log",
    "aria-live": "off",
  });
  private last = 0;
  add(lines: LogLine[]): void {
    const atEnd = this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight < 40;
    for (const line of lines) {
      if (line.number <= this.last) continue;
      this.last = line.number;
      this.node.append(h("div", null, h("time", null, clock(line.time)), line.text));
    }
    while (this.node.childElementCount > logLinesMax) this.node.firstElementChild?.remove();
    if (atEnd) this.node.scrollTop = this.node.scrollHeight;
  }
  get after(): number {
    return this.last;
  }
}

function hereText(worker: JobWorker, isRunning: boolean): string {
  if (worker.standing === "banned") return "banned";
  if (!isRunning) return none;
  if (!worker.here) return "gone";
  if (worker.late) return "late";
  if (worker.units_held === undefined) return "here";
  return worker.units_held > 0 ? "computing" : "waiting";
}

function rowClass(worker: JobWorker, isRunning: boolean): string {
  if (worker.standing === "banned") return "banned";
  if (!isRunning) return "";
  return worker.late ? "late" : worker.here ? "" : "gone";
}

function workersTable(isRunning: () => boolean): Table<JobWorker> {
  const now = (worker: JobWorker): string => hereText(worker, isRunning());
  return new Table<JobWorker>({
    label: "Workers of this job",
    empty: "No worker has joined yet.",
    rowHeight: 44,
    key: (worker) => worker.name,
    rowClass: (worker) => rowClass(worker, isRunning()),
    columns: [
      {
        title: "Worker",
        width: "auto",
        fill: textColumn((worker) => worker.name),
        sort: (worker) => worker.name,
      },
      {
        title: "Share",
        width: "20%",
        phoneWidth: "8rem",
        kind: "number",
        fill: (cell, worker) => fillBar(cell, worker.share, percent(worker.share)),
        sort: (worker) => worker.share,
      },
      { title: "Now", width: "6.5rem", fill: textColumn(now), sort: now },
      {
        title: "Standing",
        width: "6.5rem",
        fill: textColumn(standingText),
        sort: standingRank,
        shown: isGuarded,
        hide: "phone",
        hint: "Unproven: every unit is computed again; proven: some are; banned: one was wrong",
      },
      {
        title: "Audits",
        width: "6.5rem",
        fill: textColumn(auditsText),
        sort: (worker) => worker.audits_agreed ?? 0,
        shown: isGuarded,
        hide: "tablet",
        hint: "Units that were computed again and found right, and wrong ones",
      },
      {
        title: "Rejected",
        width: "6rem",
        kind: "number",
        fill: textColumn(rejectedText),
        sort: (worker) => worker.rejected ?? 0,
        shown: isGuarded,
        hide: "tablet",
        hint: "Updates that were not used",
      },
      {
        title: "Samples",
        width: "6rem",
        kind: "number",
        fill: textColumn((worker) => short(worker.samples)),
        sort: (worker) => worker.samples,
        hide: "phone",
      },
      {
        title: "Units",
        width: "4.5rem",
        kind: "number",
        fill: textColumn((worker) => short(worker.units)),
        sort: (worker) => worker.units,
        hide: "tablet",
      },
      {
        title: "Samples/s",
        width: "6.5rem",
        kind: "number",
        fill: textColumn((worker) => rate(worker.samples_per_s)),
        sort: (worker) => worker.samples_per_s,
        hide: "phone",
      },
      {
        title: "Lag",
        width: "5.5rem",
        kind: "number",
        fill: textColumn((worker) => (worker.here && isRunning() ? lag(worker.lag_s) : none)),
        sort: (worker) => worker.lag_s,
        hide: "tablet",
        hint: "Since it was last heard",
      },
    ],
  });
}

// The same training and the same result from a terminal.
function commands(job: Job): HTMLElement {
  const { spec } = job;
  const file = `${fileName(job.name)}.safetensors`;
  const data = shellWord(spec.data ?? "DATA");
  const train = trainCommand(job);
  return h(
    "div",
    { class: "stack" },
    h("p", { class: "muted small" }, "Score the model that you downloaded:"),
    copyable(`shoal eval ${file} --data ${data}`, "The command that scores the model"),
    train && h("p", { class: "muted small" }, "The same training on one machine:"),
    train && copyable(train, "The command that trains it"),
  );
}

export function jobPage(frame: Frame, id: number): Page {
  const path = `/jobs/${id}`;
  let job: Job | null = null;
  let isClosed = false;
  let rejected: number | null = null; // updates, of all workers
  const title = h("h1", { tabindex: -1 }, `Job ${id}`);
  const state = h("span");
  const sentence = h("p", { class: "lead", role: "status" }, "…");
  const bar = new Bar();
  const figures = h("dl", { class: "figures" });
  const actions = h("div", { class: "row actions" });
  const failure = h("p", { class: "error", role: "alert", hidden: true });
  const curves = new JobCurves();
  const workers = workersTable(() => job?.state === "running");
  const timeline = new Timeline();
  const swarm = new SwarmPicture();
  const swarmCard = card("Where the data comes from", swarm.node);
  swarmCard.hidden = true;
  const log = new Log();
  const downloads = h("div", { class: "stack" });
  const invite = h(
    "details",
    { class: "card", hidden: true },
    h("summary", null, h("h2", null, "Invite to this job")),
  );
  const endTheme = onTheme(() => {
    timeline.repaint();
    swarm.repaint();
  });
  const content = h("div", { class: "stack" });

  function setFigures(of: Job): void {
    const { progress } = of;
    const metric = progress.metric_name ?? "metric";
    const pairs: [string, string][] = [
      ["Loss", value(progress.loss)],
      [`Training ${metric}`, value(progress.metric)],
      [`${progress.held_out === "valid" ? "Validation" : "Test"} ${metric}`, value(progress.held_out_metric)],
      ["Samples a second", rate(progress.samples_per_s)],
      ["Workers", count(of.workers)],
      ["Units leased again", count(progress.again)],
    ];
    if (of.guard?.audited) pairs.push(["Units audited", count(of.guard.checks)]);
    if (of.guard?.on) pairs.push(["Updates rejected", count(of.guard.rejected)]);
    else if (rejected !== null) pairs.push(["Updates rejected", count(rejected)]);
    if (figures.childElementCount !== pairs.length)
      replace(figures, ...pairs.map(() => h("div", null, h("dt"), h("dd"))));
    pairs.forEach(([name, text], i) => {
      const pair = figures.children[i] as HTMLElement;
      setText(pair.children[0] as Element, name);
      setText(pair.children[1] as Element, text);
    });
  }

  // What can be done depends on the state alone: the buttons are made anew only when that changes.
  let actionsFor = "";
  function setActions(of: Job): void {
    const key = `${of.state} ${of.files.model} ${of.files.onnx} ${of.files.events} ${of.sha256 ?? ""}`;
    if (key === actionsFor) return;
    actionsFor = key;
    const hosts = may(frame.server.role, "host");
    const owns = mayChange(frame.server, of);
    const canStop = of.state === "running" || of.state === "waiting";
    const stop = button(
      "Stop",
      "danger",
      () => void busy(stop, async () => take(await post<JobAsSent>(`${path}/stop`))),
    );
    const resume = button("Resume", "main", () => void busy(resume, () => resumeJob(of)));
    const drop = button("Delete", "plain", () => void busy(drop, () => deleteJob(of)));
    replace(
      actions,
      owns && canStop && stop,
      owns && !canStop && resume,
      hosts && h("a", { class: "button plain", href: `/host?from=${id}` }, "Host one like it"),
      owns && !canStop && drop,
    );
    setDownloads(of);
  }

  async function resumeJob(of: Job): Promise<void> {
    const epochs = await askEpochs(of);
    if (epochs === null) return;
    take(await post<JobAsSent>(`${path}/resume`, epochs === of.spec.epochs ? {} : { epochs }));
  }

  async function deleteJob(of: Job): Promise<void> {
    const sure = await ask(
      `Delete “${of.name}”?`,
      "Its model, curves and log are removed from the server. This cannot be undone.",
      "Delete",
    );
    if (!sure) return;
    await remove(path);
    frame.go("/");
  }

  function setDownloads(of: Job): void {
    const name = fileName(of.name);
    const files: [boolean, string, string, string][] = [
      [of.files.model, "model", "/model", `${name}.safetensors`],
      [of.files.onnx, "ONNX", "/model.onnx", `${name}.onnx`],
      [of.files.events, "TensorBoard events", "/events", `events.out.tfevents.${name}`],
    ];
    const row = h("div", { class: "row" });
    for (const [there, text, file, saved] of files) {
      const press: HTMLButtonElement = button(
        `Download ${text}`,
        "plain",
        () => void busy(press, () => download(path + file, saved)),
      );
      press.disabled = !there;
      row.append(press);
    }
    const none =
      !of.files.model &&
      h("p", { class: "muted small" }, "The model can be downloaded when the first epoch is done.");
    replace(
      downloads,
      row,
      none,
      of.sha256 &&
        h("p", { class: "muted small" }, "SHA-256 of the weights: ", h("code", { class: "hash" }, of.sha256)),
      commands(of),
      of.spec.model &&
        h("details", null, h("summary", null, "The model's text"), h("pre", { tabindex: 0 }, of.spec.model)),
    );
  }

  function setFacts(of: Job): string {
    const { spec } = of;
    const facts = [
      of.host && `hosted by ${of.host}`,
      spec.data && `on ${spec.data}`,
      `${count(of.weights)} weights`,
      `${count(of.samples)} samples`,
      spec.mode,
      spec.wire,
      spec.rule !== "mean" && spec.rule,
      spec.guard === false && "no audits",
      of.private && "private",
      `made ${date(of.created)}`,
    ];
    return facts.filter(Boolean).join(" · ");
  }

  const facts = h("p", { class: "muted small" }, "…");
  const draw = eachFrame(() => {
    if (!job || isClosed) return;
    setText(title, job.name);
    frame.title(job.state === "running" ? `${percent(part(job.progress))} ${job.name}` : job.name);
    setState(state, job.state);
    setText(sentence, summary(job, Date.now() / 1000));
    setText(facts, setFacts(job));
    bar.set(part(job.progress));
    setFigures(job);
    setActions(job);
    curves.name(job);
    invite.hidden = !mayChange(frame.server, job);
  });

  function take(sent: JobAsSent): void {
    const newer = wholeJob(sent);
    const isOtherState = job !== null && job.state !== newer.state;
    if (isOtherState) announce(`The job is now ${newer.state}`);
    // Live updates may come without the model's text.
    const model = newer.spec.model ?? job?.spec.model;
    job = {
      ...newer,
      spec: { ...newer.spec, ...(model === undefined ? {} : { model }) },
      progress: furtherProgress(job?.progress ?? null, newer.progress),
    };
    if (isOtherState) workers.refresh();
    draw();
  }

  function takeWorkers(all: JobWorker[]): void {
    workers.set(byShare(all));
    rejected = allRejected(all);
    draw();
  }

  async function fetchTimeline(): Promise<void> {
    const { units } = await get<{ units: Unit[] }>(`${path}/timeline`);
    if (!isClosed) timeline.set(units, Date.now() / 1000);
  }

  // A job that ends has no swarm any more: what was last seen of it stays.
  async function fetchSwarm(): Promise<void> {
    const now = await get<Swarm>(`${path}/swarm`);
    if (isClosed || (now.members.length === 0 && swarm.isShown)) return;
    swarm.set(now);
    swarmCard.hidden = now.members.length === 0;
  }

  async function fetchAll(): Promise<void> {
    const [theJob, history, theWorkers, lines] = await Promise.all([
      get<JobAsSent>(path),
      get<History>(`${path}/history`),
      get<{ workers: JobWorker[] }>(`${path}/workers`),
      get<{ lines: LogLine[] }>(`${path}/log?after=${log.after}`),
      fetchTimeline(),
      fetchSwarm(),
    ]);
    if (isClosed) return;
    take(theJob);
    curves.reset(history);
    takeWorkers(theWorkers.workers);
    log.add(lines.lines);
  }

  function onEvent(name: string, data: unknown): void {
    if (name === "job") take(data as JobAsSent);
    else if (name === "rounds") curves.addRounds(data as RoundPoint[]);
    else if (name === "epoch") curves.addEpoch(data as EpochPoint);
    else if (name === "workers") takeWorkers((data as { workers: JobWorker[] }).workers);
    else if (name === "log") log.add([data as LogLine]);
    else if (name === "reset") void fetchAll().catch(() => undefined);
  }

  function showMissing(text: string): void {
    replace(content, failure, h("a", { href: "/" }, "To the overview"));
    failure.textContent = text;
    failure.hidden = false;
  }

  const live: Live = new Live(`${path}/live`, {
    opened: fetchAll,
    event: onEvent,
    state(now, retryMs, why) {
      frame.live(now, retryMs, why, () => live.now());
      if (now === "ended") showMissing(why);
    },
  });
  const timer = window.setInterval(() => {
    if (job?.state !== "running" || document.hidden) return;
    fetchTimeline().catch(() => undefined);
    fetchSwarm().catch(() => undefined);
  }, lookEveryMs);
  invite.addEventListener("toggle", () => {
    if (invite.open && invite.childElementCount === 1)
      invite.append(inviteForm(frame.server, id, () => undefined));
  });

  replace(
    content,
    failure,
    h("div", { class: "card" }, h("div", { class: "jobbar" }, bar.node), sentence, figures, facts),
    curves.node,
    card("Who contributes", workers.node),
    card("Units of work", timeline.node),
    swarmCard,
    h(
      "div",
      { class: "columns" },
      h("section", { class: "card fill" }, h("h2", null, "Log"), log.node),
      card("Take it with you", downloads),
    ),
    invite,
  );
  return {
    title: `Job ${id}`,
    node: h(
      "div",
      { class: "page" },
      h("div", { class: "pagehead" }, h("div", { class: "row" }, title, state), actions),
      content,
    ),
    close() {
      isClosed = true;
      clearInterval(timer);
      live.close();
      curves.close();
      timeline.close();
      swarm.close();
      endTheme();
    },
  };
}

function byShare(workers: JobWorker[]): JobWorker[] {
  return workers.slice().sort((a, b) => b.samples - a.samples || a.name.localeCompare(b.name));
}

// How many epochs in all; null when it was called off.
function askEpochs(job: Job): Promise<number | null> {
  const now = job.spec.epochs ?? job.progress.epoch;
  const proposed = job.state === "finished" ? now + Math.max(1, Math.round(now / 2)) : now;
  const least = job.state === "finished" ? now + 1 : 1;
  const input = h("input", { type: "number", min: least, max: 100_000, value: proposed, required: true });
  const field = new Field("Epochs in all", input, `It had ${now}.`);
  return new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { class: "ask", "aria-label": "Resume" },
      h(
        "form",
        { method: "dialog" },
        h("h2", null, "Resume the training"),
        field.node,
        h(
          "div",
          { class: "row end" },
          h("button", { class: "button plain", value: "no", formnovalidate: true }, "Cancel"),
          h("button", { class: "button main", value: "yes" }, "Resume"),
        ),
      ),
    );
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes" ? Number(input.value) : null);
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
    input.select();
  });
}
