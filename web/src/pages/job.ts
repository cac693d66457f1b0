// job.ts: a training, live: how far it is, its curves, who contributes, what happened, and what one can do
// with it.

import { get } from "../api";
import { h, type Child } from "../dom";
import { Field } from "../fields";
import {
  ago,
  capital,
  count,
  counted,
  date,
  duration,
  fileName,
  lag,
  none,
  rate,
  shellWord,
  short,
  value,
} from "../format";
import { help } from "../help";
import { inviteForm } from "../invite";
import { part } from "../jobs_list";
import type { Frame, Page } from "../page";
import { askWith, card, copyable, downloadButtons, foldedCard, shareColumn, standingColumns } from "../parts";
import { trainCommand } from "../spec";
import { allRejected, isGuarded, nowClass, nowText, rejectedText } from "../standing";
import { SwarmPicture } from "../swarm_picture";
import { Table, textColumn } from "../table";
import { onTheme } from "../theme";
import { Timeline } from "../timeline";
import {
  mayChange,
  type EpochPoint,
  type History,
  type Job,
  type JobWorker,
  type RoundPoint,
  type Swarm,
  type Unit,
} from "../types";
import { JobClasses } from "./job_classes";
import { JobCurves } from "./job_curves";
import { LiveJob, type Figure } from "./live_job";

const lookEveryMs = 2000; // at the timeline and the swarm

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

function workersTable(isRunning: () => boolean): Table<JobWorker> {
  const now = (worker: JobWorker): string => nowText(worker, isRunning());
  return new Table<JobWorker>({
    label: "Workers of this job",
    empty: "No worker has joined yet.",
    rowHeight: 44,
    key: (worker) => worker.name,
    rowClass: (worker) => nowClass(worker, isRunning()),
    columns: [
      {
        title: "Worker",
        width: "auto",
        wraps: true,
        fill: textColumn((worker) => worker.name),
        sort: (worker) => worker.name,
      },
      shareColumn("7.5rem", (worker) => worker.share),
      { title: "Now", width: "6.5rem", phoneWidth: "5.6rem", fill: textColumn(now), sort: now },
      ...standingColumns,
      {
        title: "Rejected",
        width: "7rem",
        kind: "number",
        fill: textColumn(rejectedText),
        sort: (worker) => worker.rejected ?? 0,
        shown: isGuarded,
        hide: "tablet",
        hint: help.rejected,
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
        hint: help.units,
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
        hint: help.heard,
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

function figuresOf(job: Job, rejected: number | null): Figure[] {
  const { progress, guard } = job;
  const metric = progress.metric_name || "metric";
  const pairs: Figure[] = [
    ["Loss", value(progress.loss)],
    [`Training ${metric}`, value(progress.metric)],
    [`${progress.held_out === "valid" ? "Validation" : "Test"} ${metric}`, value(progress.held_out_metric)],
    ["Samples a second", rate(progress.samples_per_s)],
    ["Workers", count(job.workers)],
    ["Units leased again", count(progress.again), { help: `${help.units} ${help.again}` }],
  ];
  if (guard?.audited) pairs.push(["Units audited", count(guard.checks), { help: help.audited }]);
  const unused = guard?.on ? guard.rejected : rejected;
  if (unused !== null) pairs.push(["Updates rejected", count(unused), { help: help.rejected }]);
  return pairs;
}

function factsOf(job: Job): (string | false | undefined)[] {
  const { spec } = job;
  return [
    job.host && `hosted by ${job.host}`,
    spec.data && `on ${spec.data}`,
    job.weights > 0 && counted(job.weights, "weight"),
    job.samples > 0 && counted(job.samples, "sample"),
    spec.mode,
    spec.wire,
    spec.rule !== "mean" && spec.rule,
    spec.guard === false && "no audits",
    job.private && "private",
    `made ${date(job.created)}`,
  ];
}

function downloadsOf(job: Job, path: string): Child[] {
  const name = fileName(job.name);
  const { files, sha256, spec } = job;
  return [
    downloadButtons([
      { isThere: files.model, text: "model", path: `${path}/model`, name: `${name}.safetensors` },
      { isThere: files.onnx, text: "ONNX", path: `${path}/model.onnx`, name: `${name}.onnx` },
      {
        isThere: files.events,
        text: "TensorBoard events",
        path: `${path}/events`,
        name: `events.out.tfevents.${name}`,
      },
    ]),
    !files.model &&
      h("p", { class: "muted small" }, "The model can be downloaded when the first epoch is done."),
    sha256 &&
      h("p", { class: "muted small" }, "SHA-256 of the weights: ", h("code", { class: "hash" }, sha256)),
    commands(job),
    spec.model &&
      h("details", null, h("summary", null, "The model's text"), h("pre", { tabindex: 0 }, spec.model)),
  ];
}

export function jobPage(frame: Frame, id: number): Page {
  let rejected: number | null = null; // updates, of all workers
  const curves = new JobCurves(id);
  const classes = new JobClasses(`/jobs/${id}`);
  const workers = workersTable(() => view.job?.state === "running");
  const timeline = new Timeline();
  const swarm = new SwarmPicture();
  const swarmCard = card("Where the data comes from", swarm.node);
  swarmCard.hidden = true;
  const invite = foldedCard("Invite to this job", () => inviteForm(frame.server, id, () => undefined));
  invite.hidden = true;
  const endTheme = onTheme(() => {
    timeline.repaint();
    swarm.repaint();
  });

  async function fetchTimeline(): Promise<void> {
    const { units } = await get<{ units: Unit[] }>(`${view.path}/timeline`);
    if (view.isClosed) return;
    timeline.set(units, Date.now() / 1000);
    view.draw();
  }

  // A job that ends has no swarm any more: what was last seen of it stays.
  async function fetchSwarm(): Promise<void> {
    const now = await get<Swarm>(`${view.path}/swarm`);
    if (view.isClosed || (now.members.length === 0 && swarm.isShown)) return;
    swarm.set(now);
    swarmCard.hidden = now.members.length === 0 || view.job?.started === null;
  }

  const view: LiveJob = new LiveJob(frame, id, `Job ${id}`, {
    noun: "job",
    lookEveryMs,
    another: { text: "Host one like it", page: "/host" },
    goes: "Its model, curves and log",
    part: (job) => part(job.progress),
    sentence: summary,
    figures: (job) => figuresOf(job, rejected),
    facts: factsOf,
    resumeText: () => "Resume",
    askResume: askEpochs,
    downloads: (job) => downloadsOf(job, view.path),
    updated(job, before) {
      if (before && before.state !== job.state) workers.refresh();
      curves.name(job);
      if (job.files.evaluation && (!before?.files.evaluation || before.state !== job.state)) classes.look();
      invite.hidden = !mayChange(frame.server, job);
    },
    takeWorkers(all) {
      workers.set(byShare(all));
      rejected = allRejected(all);
      view.draw();
    },
    async fetch() {
      const [history] = await Promise.all([
        get<History>(`${view.path}/history`),
        fetchTimeline(),
        fetchSwarm(),
      ]);
      return () => curves.reset(history);
    },
    event(name, data) {
      if (name === "rounds") curves.addRounds(data as RoundPoint[]);
      else if (name === "epoch") {
        curves.addEpoch(data as EpochPoint);
        if (view.job?.files.evaluation) classes.look();
      }
    },
    look() {
      fetchTimeline().catch(() => undefined);
      fetchSwarm().catch(() => undefined);
    },
    close() {
      curves.close();
      classes.close();
      timeline.close();
      swarm.close();
      endTheme();
    },
  });
  return view.page(
    view.onceThere(curves.node, () => curves.areThere),
    classes.node,
    view.onceThere(card("Who contributes", workers.node), () => !workers.isEmpty),
    view.onceThere(
      card("Units of work", h("p", { class: "hint" }, help.units), timeline.node),
      () => timeline.isThere,
    ),
    swarmCard,
    h(
      "div",
      { class: "columns" },
      view.logCard(),
      view.onceThere(card("Take it with you", view.downloads), () => view.job?.started !== null),
    ),
    invite,
  );
}

function byShare(workers: JobWorker[]): JobWorker[] {
  return workers.slice().sort((a, b) => b.samples - a.samples || a.name.localeCompare(b.name));
}

// How many epochs in all; null when it was called off.
async function askEpochs(job: Job): Promise<{ epochs?: number } | null> {
  const now = job.spec.epochs ?? job.progress.epoch;
  const proposed = job.state === "finished" ? now + Math.max(1, Math.round(now / 2)) : now;
  const least = job.state === "finished" ? now + 1 : 1;
  const input = h("input", { type: "number", min: least, max: 100_000, value: proposed, required: true });
  const field = new Field("Epochs in all", input, `It had ${now}.`);
  if (!(await askWith("Resume the training", "Resume", "main", [field.node], input))) return null;
  const epochs = Number(input.value);
  return epochs === job.spec.epochs ? {} : { epochs };
}
