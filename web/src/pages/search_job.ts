// search_job.ts: one search, live: how far it is, its trials in a leaderboard and in plots, what was found
// out, and what one can do with it.

import { get, post, Problem, remove } from "../api";
import { announce, eachFrame, h, later, replace, setText } from "../dom";
import { ago, count, date, duration, figure, none, percent } from "../format";
import { shareDone, wholeJob, type JobAsSent } from "../job_shape";
import { Live } from "../live";
import type { Frame, Page } from "../page";
import { ask, Bar, busy, button, card, fillBar, setState } from "../parts";
import { Board } from "../search_board";
import { LearningCurves } from "../search_curves";
import { InsightView } from "../search_insight";
import { Parallel } from "../search_parallel";
import { predictForm } from "../search_predict";
import { SearchPlots } from "../search_plots";
import { shareForm } from "../search_share";
import { Trials, type Trial } from "../search_trials";
import type { Insight, Profile, SearchProgress, SearchSpec, TrialRow } from "../search_types";
import { Table, textColumn } from "../table";
import { onTheme } from "../theme";
import { may, mayChange, type Dataset, type Job, type JobWorker, type LogLine } from "../types";
import { Log } from "./job";
import { searchDownloads } from "./search_downloads";
import { askMore } from "./search_more";

const rowsAtOnce = 1000;
const redrawMs = 400; // while trials come; a redraw of thousands is not free
const workersMs = 3000;
const bestShown = 3; // learning curves when nobody has chosen any

const noProgress: SearchProgress = {
  phase: "reads",
  share: null,
  spent_s: 0,
  left_s: null,
  trials: 0,
  units: 0,
  best: 0,
  best_score: null,
  metric: "",
  higher_is_better: true,
};

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function searchOf(job: Job): SearchProgress {
  return job.search ?? noProgress;
}

// The sentence under the name.
function summary(job: Job, now: number): string {
  const search = searchOf(job);
  const done = `${count(search.trials)} ${search.trials === 1 ? "trial" : "trials"}`;
  if (job.state === "finished")
    return job.ended ? `Finished ${ago(job.ended, now)}: ${done}.` : `Finished: ${done}.`;
  if (job.state === "stopped" || job.state === "failed")
    return `${capital(job.reason || job.state)} (${done}).`;
  if (job.workers === 0) return job.reason ? `${capital(job.reason)}.` : "Waits for workers.";
  if (search.phase === "reads") return "Reads the table.";
  if (search.phase === "gathers") return "Makes the model of the best trials.";
  return search.left_s === null
    ? `Tries: ${done} so far.`
    : `Tries: ${done} so far, ${duration(search.left_s)} left.`;
}

function factsOf(of: Job): string {
  const spec = of.spec as Partial<SearchSpec>;
  const words = [
    of.host && `by ${of.host}`,
    spec.data && `on ${spec.data}`,
    spec.target && `predicts ${spec.target}`,
    spec.scheduler && `scheduler ${spec.scheduler}`,
    spec.folds ? (spec.folds > 1 ? `${spec.folds} folds` : "hold-out") : null,
    spec.budget_s ? `${duration(spec.budget_s)} in all` : null,
    spec.trials ? `at most ${count(spec.trials)} trials` : null,
    of.private && "private",
    `made ${date(of.created)}`,
  ];
  return words.filter(Boolean).join(" · ");
}

function workersTable(all: () => number): Table<JobWorker> {
  return new Table<JobWorker>({
    label: "Workers of this search",
    empty: "No worker has finished anything yet.",
    rowHeight: 44,
    key: (worker) => worker.name,
    columns: [
      {
        title: "Worker",
        width: "auto",
        fill: textColumn((worker) => worker.name),
        sort: (worker) => worker.name,
      },
      {
        title: "Share",
        width: "30%",
        phoneWidth: "8rem",
        kind: "number",
        fill: (cell, worker) => fillBar(cell, worker.units / all(), percent(worker.units / all())),
        sort: (worker) => worker.units,
      },
      {
        title: "Units",
        width: "5rem",
        kind: "number",
        fill: textColumn((worker) => count(worker.units)),
        sort: (worker) => worker.units,
      },
      {
        title: "Computing",
        width: "7.5rem",
        kind: "number",
        fill: textColumn((worker) => duration(worker.seconds)),
        sort: (worker) => worker.seconds,
        hide: "phone",
      },
    ],
  });
}

export function searchJobPage(frame: Frame, id: number): Page {
  const path = `/jobs/${id}`;
  let job: Job | null = null;
  let isClosed = false;
  let allUnits = 1;
  let pointed = 0;
  let ranked: Trial[] = [];
  let shown: Trial[] = []; // those that filters leave
  const trials = new Trials();
  const title = h("h1", { tabindex: -1 }, `Search ${id}`);
  const state = h("span");
  const sentence = h("p", { class: "lead", role: "status" }, "…");
  const bar = new Bar();
  const figures = h("dl", { class: "figures" });
  const facts = h("p", { class: "muted small" }, "…");
  const actions = h("div", { class: "row actions" });
  const failure = h("p", { class: "error", role: "alert", hidden: true });
  const content = h("div", { class: "stack" });
  const downloads = h("div", { class: "stack" });
  const log = new Log();
  const workers = workersTable(() => Math.max(allUnits, 1));
  const curves = new LearningCurves(path);
  const insight = new InsightView();
  const predicting = h("div", null, h("p", { class: "empty" }, "Comes with the model."));
  const share = h(
    "details",
    { class: "card", hidden: true },
    h("summary", null, h("h2", null, "Share the results")),
  );
  const board = new Board({
    chosen: () => showMarks(),
    hover: (trial) => point(trial),
    filtered: (rows) => {
      shown = rows;
      drawPlots();
    },
  });
  const tip = (number: number): string[] => {
    const trial = trials.get(number);
    return trial ? [`trial ${number}: ${figure(trial.score)}`, trial.text] : [];
  };
  const plots = new SearchPlots({
    tip,
    pick: (trial) => board.toggle(trial),
    hover: (trial) => point(trial),
  });
  const parallel = new Parallel({
    tip,
    pick: (trial) => board.toggle(trial),
    hover: (trial) => point(trial),
    kept: (test) => board.keep(test),
  });
  const endTheme = onTheme(() => {
    plots.repaint();
    parallel.repaint();
    insight.repaint();
  });

  function metricName(): string {
    return (job && searchOf(job).metric) || "score";
  }
  function isHigher(): boolean {
    return !job || searchOf(job).higher_is_better;
  }

  // ---- what is pointed at and chosen, in all views ----

  function showMarks(): void {
    plots.mark(board.chosen, pointed);
    parallel.mark(board.chosen, pointed);
    showCurves();
  }

  function point(trial: number): void {
    if (trial === pointed) return;
    pointed = trial;
    board.mark(trial);
    plots.mark(board.chosen, trial);
    parallel.mark(board.chosen, trial);
  }

  function showCurves(): void {
    const chosen =
      board.chosen.length > 0
        ? board.chosen.flatMap((number) => trials.get(number) ?? [])
        : ranked.slice(0, bestShown).filter((trial) => trial.score !== null);
    curves.show(chosen, metricName());
  }

  // One after the other, so that nothing waits for all of them.
  const drawPlots = later(40, () => {
    if (!isClosed) plots.set(trials, shown, metricName(), isHigher(), job?.started ?? 0);
  });
  const drawParallel = later(80, () => {
    if (!isClosed) parallel.set(ranked, metricName());
  });
  let redraw = 0;
  function drawTrials(): void {
    if (redraw !== 0) return;
    redraw = window.setTimeout(() => {
      redraw = 0;
      if (!isClosed) drawTrialsNow();
    }, redrawMs);
  }

  function drawTrialsNow(): void {
    ranked = trials.ranked(isHigher());
    board.set(ranked, isHigher());
    drawParallel();
    showCurves();
  }

  // ---- the head ----

  function setFigures(of: Job): void {
    const search = searchOf(of);
    const pairs: [string, string][] = [
      [`Best ${search.metric || "score"}`, figure(search.best_score)],
      ["Trials", count(search.trials)],
      ["Units finished", count(search.units)],
      ["Workers", count(of.workers)],
      ["Time spent", search.spent_s > 0 ? duration(search.spent_s) : none],
      ["Time left", search.left_s === null ? none : duration(search.left_s)],
    ];
    if (figures.childElementCount !== pairs.length)
      replace(figures, ...pairs.map(() => h("div", null, h("dt"), h("dd"))));
    pairs.forEach(([name, text], i) => {
      const pair = figures.children[i] as HTMLElement;
      setText(pair.children[0] as Element, name);
      setText(pair.children[1] as Element, text);
    });
  }

  let actionsFor = "";
  function setActions(of: Job): void {
    const key = `${of.state} ${of.files.model} ${of.files.onnx}`;
    if (key === actionsFor) return;
    actionsFor = key;
    const owns = mayChange(frame.server, of);
    const canStop = of.state === "running" || of.state === "waiting";
    const stop = button(
      "Stop",
      "danger",
      () => void busy(stop, async () => take(await post<JobAsSent>(`${path}/stop`))),
    );
    const more = button(
      of.state === "finished" ? "Search on" : "Resume",
      "main",
      () => void busy(more, () => resume(of)),
    );
    const drop = button("Delete", "plain", () => void busy(drop, () => deleteJob(of)));
    replace(
      actions,
      owns && canStop && stop,
      owns && !canStop && more,
      may(frame.server.role, "host") &&
        h("a", { class: "button plain", href: `/search?from=${id}` }, "Clone"),
      owns && !canStop && drop,
    );
    replace(downloads, searchDownloads(of, path));
    if (of.files.model) void fetchProfile(of);
  }

  async function resume(of: Job): Promise<void> {
    const more = await askMore(of);
    if (more) take(await post<JobAsSent>(`${path}/resume`, more));
  }

  async function deleteJob(of: Job): Promise<void> {
    const sure = await ask(
      `Delete “${of.name}”?`,
      "Its trials, model and log are removed from the server. This cannot be undone.",
      "Delete",
    );
    if (!sure) return;
    await remove(path);
    frame.go("/");
  }

  const draw = eachFrame(() => {
    if (!job || isClosed) return;
    setText(title, job.name);
    frame.title(job.state === "running" ? `${percent(shareDone(job))} ${job.name}` : job.name);
    setState(state, job.state);
    setText(sentence, summary(job, Date.now() / 1000));
    setText(facts, factsOf(job));
    bar.set(shareDone(job));
    setFigures(job);
    setActions(job);
    share.hidden = !mayChange(frame.server, job);
  });

  function take(sent: JobAsSent): void {
    const newer = wholeJob(sent);
    const isOtherState = job !== null && job.state !== newer.state;
    const isOtherMetric = job === null || searchOf(job).metric !== searchOf(newer).metric;
    const isOtherPhase = job !== null && searchOf(job).phase !== searchOf(newer).phase;
    const hadModel = job?.files.model ?? false;
    if (isOtherState) announce(`The search is now ${newer.state}`);
    job = { ...newer, spec: { ...job?.spec, ...newer.spec } };
    if (isOtherMetric) drawTrials();
    if (isOtherState || isOtherPhase || !hadModel) void fetchInsight();
    if (isOtherState) void fetchRest();
    draw();
  }

  // ---- what comes from the server ----

  async function fetchTrials(): Promise<void> {
    let next: number | null = trials.from;
    while (next !== null && !isClosed) {
      const page: { trials: TrialRow[]; next: number | null } = await get(
        `${path}/trials?from=${next}&limit=${rowsAtOnce}`,
      );
      trials.add(page.trials);
      next = page.next;
    }
  }

  // It is written after the model.
  async function fetchInsight(): Promise<void> {
    if (!job?.files.model || searchOf(job).phase === "gathers") return;
    try {
      const found = await get<Insight>(`${path}/insight`);
      if (!isClosed) insight.set(found, metricName(), (number) => trials.get(number));
    } catch (thrown) {
      if (!(thrown instanceof Problem)) throw thrown;
    }
  }

  let isProfiled = false;
  async function fetchProfile(of: Job): Promise<void> {
    const spec = of.spec as Partial<SearchSpec>;
    if (isProfiled || !spec.data) return;
    isProfiled = true;
    try {
      const profile = await profileOf(spec);
      if (profile && !isClosed) replace(predicting, predictForm(path, profile, spec));
    } catch (thrown) {
      isProfiled = false;
      if (!(thrown instanceof Problem)) throw thrown;
      replace(predicting, h("p", { class: "error" }, `The columns are not known: ${thrown.message}.`));
    }
  }

  async function fetchAll(): Promise<void> {
    const [theJob, theWorkers, lines] = await Promise.all([
      get<JobAsSent>(path),
      get<{ workers: JobWorker[] }>(`${path}/workers`),
      get<{ lines: LogLine[] }>(`${path}/log?after=${log.after}`),
      fetchTrials(),
    ]);
    if (isClosed) return;
    take(theJob);
    takeWorkers(theWorkers.workers);
    log.add(lines.lines);
    drawTrialsNow();
  }

  // What the stream may have left out.
  async function fetchRest(): Promise<void> {
    await fetchWorkers();
    try {
      await fetchTrials();
      drawTrials();
    } catch {
      // It is asked again when the stream is opened again.
    }
  }

  async function fetchWorkers(): Promise<void> {
    try {
      takeWorkers((await get<{ workers: JobWorker[] }>(`${path}/workers`)).workers);
    } catch {
      // The stream says when the server is gone.
    }
  }

  function takeWorkers(all: JobWorker[]): void {
    if (isClosed) return;
    allUnits = all.reduce((sum, worker) => sum + worker.units, 0);
    workers.set(all.slice().sort((a, b) => b.units - a.units || a.name.localeCompare(b.name)));
  }

  function onEvent(name: string, data: unknown): void {
    if (name === "job") take(data as JobAsSent);
    else if (name === "trial") {
      if (trials.add([data as TrialRow])) drawTrials();
    } else if (name === "workers") takeWorkers((data as { workers: JobWorker[] }).workers);
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
    void fetchWorkers();
  }, workersMs);
  share.addEventListener("toggle", () => {
    if (share.open && share.childElementCount === 1) share.append(shareForm(frame.server, id));
  });

  replace(
    content,
    failure,
    h("div", { class: "card" }, h("div", { class: "jobbar" }, bar.node), sentence, figures, facts),
    share,
    board.node,
    plots.node,
    card("Settings of the trials", parallel.node),
    card("Learning curves", curves.node),
    insight.node,
    card("Predict a row", predicting),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "stack" },
        card("Who contributes", workers.node),
        h("section", { class: "card fill" }, h("h2", null, "Log"), log.node),
      ),
      card("Take it with you", downloads),
    ),
  );
  return {
    title: `Search ${id}`,
    node: h(
      "div",
      { class: "page" },
      h("div", { class: "pagehead" }, h("div", { class: "row" }, title, state), actions),
      content,
    ),
    close() {
      isClosed = true;
      clearInterval(timer);
      clearTimeout(redraw);
      live.close();
      plots.close();
      parallel.close();
      curves.close();
      insight.close();
      endTheme();
    },
  };
}

// The columns as the search sees them: with what was said of them.
async function profileOf(spec: Partial<SearchSpec>): Promise<Profile | null> {
  const set = `/datasets/${encodeURIComponent(spec.data ?? "")}`;
  const isCorrected = Boolean(spec.dialect) || Object.keys(spec.columns ?? {}).length > 0;
  if (!isCorrected) return (await get<Dataset>(set)).profile ?? null;
  const corrections = { columns: spec.columns ?? {}, dialect: spec.dialect ?? "" };
  return (await post<{ profile: Profile }>(`${set}/profile`, corrections)).profile;
}
