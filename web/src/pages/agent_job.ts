// agent_job.ts: the training of an agent, live: the agent at play, how well it does, who plays for it, and
// what one can do with it.

import { nearestCheckpoint } from "../agent_curve";
import { returnText, spreadText } from "../agent_picture";
import { Player } from "../agent_player";
import {
  agentCommand,
  agentOf,
  agentShare,
  agentSpecOf,
  agentSummary,
  commandTitle,
  lagText,
  minutesText,
  scoreText,
  usualAgentMore,
} from "../agent_spec";
import type { AgentPoint, Checkpoint } from "../agent_types";
import { get } from "../api";
import { h, type Child } from "../dom";
import { Field } from "../fields";
import {
  bytes,
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
} from "../format";
import { help } from "../help";
import { inviteForm } from "../invite";
import { Latest } from "../latest";
import type { Frame, Page } from "../page";
import { askWith, card, copyable, downloadButtons, foldedCard, shareColumn, standingColumns } from "../parts";
import { shareForm } from "../search_share";
import { nowClass, nowText } from "../standing";
import { Table, textColumn } from "../table";
import { onTheme } from "../theme";
import { mayChange, type Job, type JobWorker } from "../types";
import { AgentCurves } from "./agent_curves";
import { LiveJob, type Figure } from "./live_job";

const lookEveryMs = 2000; // at the actors
const checkpointsMs = 500; // after the server has said that there are others

function figuresOf(job: Job): Figure[] {
  const agent = agentOf(job);
  const isActive = job.state === "running" || job.state === "waiting";
  const pairs: Figure[] = [
    ["Return", spreadText(agent.return_mean, agent.return_deviation)],
    [`Score of ${agent.score === null ? 100 : agent.score_episodes}`, scoreText(agent)],
    ["Steps", short(agent.steps)],
    ["Episodes", short(agent.episodes)],
    ["Time spent", agent.seconds > 0 ? duration(agent.seconds) : none],
  ];
  if (agent.goal !== null)
    pairs.splice(2, 0, [
      `Solved, at ${returnText(agent.goal)}`,
      agent.solved ? "yes" : isActive ? "not yet" : "no",
    ]);
  if (isActive)
    pairs.push(
      ["Steps a second", rate(agent.steps_per_second)],
      ["Policy lag", lagText(agent.lag), { help: help.lag }],
      ["Actors", count(agent.actors)],
      ["Rollouts waiting", count(agent.waiting), { help: help.rollouts }],
    );
  pairs.push(["Received", bytes(agent.bytes_in)], ["Sent", bytes(agent.bytes_out)]);
  return pairs;
}

function factsOf(job: Job): (string | false | null | undefined)[] {
  const spec = agentSpecOf(job);
  const agent = agentOf(job);
  return [
    job.host && `hosted by ${job.host}`,
    spec.env,
    spec.algorithm,
    spec.seed !== undefined && `seed ${spec.seed}`,
    spec.seconds ? `${duration(spec.seconds)} at most` : null,
    spec.steps ? `${counted(spec.steps, "step")} at most` : null,
    spec.until_solved === false && "continues when solved",
    spec.exact && "exact rounds",
    agent.refused > 0 && `${counted(agent.refused, "rollout")} too old`,
    Boolean(agent.checked) && `${counted(agent.checked ?? 0, "rollout")} checked`,
    Boolean(agent.lies) && `${count(agent.lies ?? 0)} found wrong`,
    agent.lost > 0 && `${counted(agent.lost, "rollout")} too late`,
    agent.given_again > 0 && `${counted(agent.given_again, "unit")} given to another actor`,
    job.private && "private",
    `made ${date(job.created)}`,
  ];
}

function actorsTable(isRunning: () => boolean): Table<JobWorker> {
  const share = shareColumn("24%", (worker: JobWorker) => worker.share);
  const fillShare = (cell: HTMLTableCellElement, worker: JobWorker): void => {
    cell.classList.add("narrow"); // a phone has no room for the bar
    share.fill(cell, worker);
  };
  const now = (worker: JobWorker): string => nowText(worker, isRunning());
  return new Table<JobWorker>({
    label: "Actors of this agent",
    empty: "Machines appear here when they have played.",
    rowHeight: 44,
    key: (worker) => worker.name,
    rowClass: (worker) => nowClass(worker, isRunning()),
    columns: [
      {
        title: "Actor",
        width: "auto",
        wraps: true,
        fill: textColumn((worker) => worker.name),
        sort: (worker) => worker.name,
      },
      { ...share, phoneWidth: "4.2rem", fill: fillShare },
      { title: "Now", width: "6.5rem", phoneWidth: "5.2rem", fill: textColumn(now), sort: now },
      ...standingColumns,
      {
        title: "Steps",
        width: "6rem",
        phoneWidth: "4.4rem",
        kind: "number",
        fill: textColumn((worker) => short(worker.samples)),
        sort: (worker) => worker.samples,
      },
      {
        title: "Rollouts",
        width: "6rem",
        kind: "number",
        fill: textColumn((worker) => short(worker.units)),
        sort: (worker) => worker.units,
        hide: "tablet",
      },
      {
        title: "Steps/s",
        width: "6rem",
        kind: "number",
        fill: textColumn((worker) => (isRunning() ? rate(worker.samples_per_s) : none)),
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

function downloadsOf(job: Job, path: string): Child[] {
  const spec = agentSpecOf(job);
  const file = `${fileName(job.name)}.safetensors`;
  return [
    downloadButtons([
      { isThere: job.files.model, text: "model", path: `${path}/model`, name: file },
      {
        isThere: job.files.onnx,
        text: "ONNX",
        path: `${path}/model.onnx`,
        name: `${fileName(job.name)}.onnx`,
      },
    ]),
    !job.files.model &&
      h(
        "p",
        { class: "muted small" },
        "The model can be downloaded as soon as it is saved for the first time.",
      ),
    h("p", { class: "muted small" }, "Watch the agent that you downloaded, in a terminal:"),
    copyable(`shoal agent play ${shellWord(file)}`, "The command that shows the agent"),
    h("p", { class: "muted small" }, commandTitle(spec)),
    copyable(agentCommand(spec), "The command that trains it"),
    spec.body &&
      h("details", null, h("summary", null, "The network's layers"), h("pre", { tabindex: 0 }, spec.body)),
  ];
}

export function agentJobPage(frame: Frame, id: number): Page {
  let checkpoints: Checkpoint[] = [];
  const curves = new AgentCurves((x) => {
    const at = nearestCheckpoint(checkpoints, curves.points, curves.over, x);
    const chosen = checkpoints[at];
    if (chosen) player.choose(at === checkpoints.length - 1 ? null : chosen.steps);
  });
  const player = new Player({
    path: `/jobs/${id}`,
    name: () => fileName(view.job?.name ?? "agent"),
    shown: (steps) => curves.show(steps),
  });
  const actors = actorsTable(() => view.job?.state === "running");
  const invite = foldedCard("Invite to this agent", () => inviteForm(frame.server, id, () => undefined));
  const share = foldedCard("Share what it does", () => shareForm(frame.server, id, "agent"));
  invite.hidden = share.hidden = true;
  const endTheme = onTheme(() => player.repaint());

  const fetchCheckpoints = async (signal?: AbortSignal): Promise<void> => {
    const got = await get<{ checkpoints: Checkpoint[] }>(`${view.path}/checkpoints`, signal);
    if (view.isClosed) return;
    checkpoints = got.checkpoints;
    player.set(checkpoints);
  };
  const newer = new Latest(checkpointsMs, (signal) => fetchCheckpoints(signal).catch(() => undefined));
  const fetchPoints = async (): Promise<AgentPoint[]> => {
    const points: AgentPoint[] = [];
    for (let from = 0; ;) {
      const page = await get<{ points: AgentPoint[]; next: number }>(`${view.path}/points?from=${from}`);
      points.push(...page.points);
      if (page.points.length === 0 || page.next <= from || view.isClosed) return points;
      from = page.next;
    }
  };
  const fetchActors = async (): Promise<void> => {
    takeWorkers((await get<{ workers: JobWorker[] }>(`${view.path}/workers`)).workers);
  };
  function takeWorkers(all: JobWorker[]): void {
    if (view.isClosed) return;
    actors.set(all.slice().sort((a, b) => b.samples - a.samples || a.name.localeCompare(b.name)));
    view.draw();
  }

  const view: LiveJob = new LiveJob(frame, id, `Agent ${id}`, {
    noun: "agent",
    lookEveryMs,
    another: { text: "Train one like it", page: "/agent" },
    goes: "Its model, checkpoints, curves and log",
    part: agentShare,
    sentence: agentSummary,
    figures: figuresOf,
    facts: factsOf,
    resumeText: (job) => (job.state === "finished" ? "Train on" : "Resume"),
    askResume: askMore,
    downloads: (job) => downloadsOf(job, view.path),
    updated(job, before) {
      if (before && before.state !== job.state) {
        actors.refresh();
        void fetchActors().catch(() => undefined);
      }
      const isOther = before !== null && agentOf(before).checkpoints !== agentOf(job).checkpoints;
      if (isOther || (before !== null && before.state !== job.state)) newer.soon();
      curves.setGoal(agentOf(job).goal);
      invite.hidden = share.hidden = !mayChange(frame.server, job);
    },
    takeWorkers,
    async fetch() {
      const [points] = await Promise.all([fetchPoints(), fetchCheckpoints()]);
      return () => curves.set(points);
    },
    event(name, data) {
      if (name === "point") curves.add([data as AgentPoint]);
    },
    look() {
      fetchActors().catch(() => undefined);
      newer.now();
    },
    async settled() {
      await newer.settled();
      await player.settled();
    },
    close() {
      newer.drop();
      curves.close();
      player.close();
      endTheme();
    },
  });
  const hasPlayed = (): boolean => curves.points.length > 0 || agentOf(view.job as Job).steps > 0;
  return view.page(
    view.onceThere(
      h(
        "div",
        { class: "columns watch" },
        h(
          "section",
          { class: "card" },
          h("div", { class: "cardhead" }, h("h2", null, "At play"), player.now),
          player.node,
        ),
        curves.returns,
      ),
      hasPlayed,
    ),
    curves.rest,
    view.onceThere(card("Who plays", actors.node), () => !actors.isEmpty),
    h(
      "div",
      { class: "columns" },
      view.logCard("low"),
      view.onceThere(card("Take it with you", view.downloads), hasPlayed),
    ),
    invite,
    share,
  );
}

// How much longer; null when it was called off. One that was stopped may go on with what was left.
async function askMore(job: Job): Promise<{ seconds?: number; steps?: number } | null> {
  const spec = agentSpecOf(job);
  const agent = agentOf(job);
  const isFinished = job.state === "finished";
  const minutes = h("input", { type: "number", name: "more-minutes", min: 0.1, step: "any", max: 1_000_000 });
  const steps = h("input", { type: "number", name: "more-steps", min: 1, step: 1 });
  const usual = isFinished ? usualAgentMore(spec, agent) : {};
  minutes.value = minutesText(usual.seconds);
  if (usual.steps) steps.value = String(usual.steps);
  const left = isFinished && !spec.seconds ? "Empty: no limit in time." : "Empty: what was left.";
  const content = [
    new Field("Minutes more", minutes, left).node,
    new Field("Steps in all, at most", steps, `It has played ${count(agent.steps)}. Empty: as before.`).node,
  ];
  const title = isFinished ? "Train on" : "Resume";
  if (!(await askWith(title, title, "main", content, minutes))) return null;
  return {
    ...(minutes.value === "" ? {} : { seconds: Number(minutes.value) * 60 }),
    ...(steps.value === "" ? {} : { steps: Number(steps.value) }),
  };
}
