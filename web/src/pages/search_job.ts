// search_job.ts: one search, live: how far it is, its trials in a leaderboard and in plots, what was found
// out, and what one can do with it.

import { get, post, Problem, textOf } from "../api";
import { h, later, replace, within } from "../dom";
import { ago, capital, count, counted, date, duration, figure, none } from "../format";
import { shareDone } from "../job_shape";
import type { Frame, Page } from "../page";
import { help } from "../help";
import { card, foldedCard, shareColumn } from "../parts";
import { Board } from "../search_board";
import { LearningCurves } from "../search_curves";
import { InsightView } from "../search_insight";
import { Parallel } from "../search_parallel";
import { predictForm } from "../search_predict";
import { SearchPlots } from "../search_plots";
import { shareForm } from "../search_share";
import { isStaged, metricText, schedulerText, searchScores } from "../search_spec";
import { Trials, type Trial } from "../search_trials";
import type { Insight, Profile, SearchProgress, SearchSpec, TrialRow } from "../search_types";
import { Table, textColumn } from "../table";
import { onTheme } from "../theme";
import { mayChange, type Dataset, type Job, type JobWorker } from "../types";
import { LiveJob, type Figure } from "./live_job";
import { searchDownloads } from "./search_downloads";
import { askMore, moreText } from "./search_more";

const rowsAtOnce = 1000;
const redrawMs = 400; // while trials come; a redraw of thousands is not free
const lookEveryMs = 3000; // at the workers
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

function searchOf(job: Job | null): SearchProgress {
  return job?.search ?? noProgress;
}

function specOf(job: Job | null): Partial<SearchSpec> {
  return (job?.spec ?? {}) as Partial<SearchSpec>;
}

// The sentence under the name.
function summary(job: Job, now: number): string {
  const search = searchOf(job);
  const done = counted(search.trials, "trial");
  if (job.state === "finished")
    return job.ended ? `Finished ${ago(job.ended, now)}: ${done}.` : `Finished: ${done}.`;
  if (job.state === "stopped" || job.state === "failed")
    return `${capital(job.reason || job.state)} (${done}).`;
  if (job.workers === 0) return job.reason ? `${capital(job.reason)}.` : "Waits for workers.";
  if (search.phase === "reads") return "Reads the table; then the first networks are tried.";
  if (search.phase === "gathers") return "Makes the model of the best trials.";
  return search.left_s === null
    ? `Tries: ${done} so far.`
    : `Tries: ${done} so far, ${duration(search.left_s)} left.`;
}

// Below the score that a search is known by.
function scoreText(search: SearchProgress): string {
  if (!searchScores(search).beside) return search.best > 0 ? `Trial ${search.best}` : "";
  return search.test_rows ? `on ${counted(search.test_rows, "row")} that nothing has learned from` : "";
}

function figuresOf(job: Job): Figure[] {
  const search = searchOf(job);
  const isActive = job.state === "running" || job.state === "waiting";
  const { main, beside } = searchScores(search);
  const pairs: Figure[] = [[main.name, figure(main.score), { isLarge: true, below: scoreText(search) }]];
  if (beside) pairs.push([beside.name, figure(beside.score), { help: help.validation }]);
  pairs.push(["Trials", count(search.trials)]);
  if (isStaged(specOf(job))) pairs.push(["Trainings, a stage each", count(search.units)]);
  pairs.push(["Time spent", search.spent_s > 0 ? duration(search.spent_s) : none]);
  if (!isActive) return pairs;
  return [
    ...pairs,
    ["Time left", search.left_s === null ? none : duration(search.left_s)],
    ["Workers", count(job.workers)],
  ];
}

function factsOf(job: Job): (string | false | null | undefined)[] {
  const spec = specOf(job);
  return [
    job.host && `by ${job.host}`,
    spec.data && `on ${spec.data}`,
    spec.target && `predicts ${spec.target}`,
    spec.scheduler && schedulerText(spec.scheduler),
    spec.folds ? (spec.folds > 1 ? `judged by ${spec.folds} folds` : "judged by rows held out") : null,
    spec.budget_s ? `${duration(spec.budget_s)} in all` : null,
    spec.trials ? `at most ${counted(spec.trials, "trial")}` : null,
    job.private && "private",
    `made ${date(job.created)}`,
  ];
}

function workersTable(all: () => number): Table<JobWorker> {
  return new Table<JobWorker>({
    label: "Workers of this search",
    empty: "Machines appear here when they have trained something.",
    rowHeight: 44,
    key: (worker) => worker.name,
    columns: [
      {
        title: "Worker",
        width: "auto",
        wraps: true,
        fill: textColumn((worker) => worker.name),
        sort: (worker) => worker.name,
      },
      shareColumn("6.5rem", (worker) => worker.units / all()),
      {
        title: "Trainings",
        width: "6.4rem",
        kind: "number",
        hint: "A trial that is trained in several stages counts once for each",
        fill: textColumn((worker) => count(worker.units)),
        sort: (worker) => worker.units,
        hide: "small",
      },
      {
        title: "Computing",
        width: "7rem",
        kind: "number",
        fill: textColumn((worker) => duration(worker.seconds)),
        sort: (worker) => worker.seconds,
        hide: "phone",
      },
    ],
  });
}

export function searchJobPage(frame: Frame, id: number): Page {
  let allUnits = 1;
  let pointed = 0;
  let ranked: Trial[] = [];
  let shown: Trial[] = []; // those that filters leave
  const trials = new Trials();
  const workers = workersTable(() => Math.max(allUnits, 1));
  const curves = new LearningCurves(`/jobs/${id}`);
  const insight = new InsightView();
  const predicting = h(
    "div",
    null,
    h("p", { class: "empty" }, "The form appears with the model: when the search ends or is stopped."),
  );
  const share = foldedCard("Share the results", () => shareForm(frame.server, id));
  share.hidden = true;
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
    return trial ? [`trial ${number}: ${metricName()} ${figure(trial.score)}`, trial.text] : [];
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
    return metricText(searchOf(view.job).metric || "score");
  }
  function isHigher(): boolean {
    return searchOf(view.job).higher_is_better;
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
    curves.show(chosen, metricName(), board.chosen.length > 0);
  }

  // One after the other, so that nothing waits for all of them.
  const drawPlots = later(40, () => {
    if (!view.isClosed) plots.set(trials, shown, metricName(), isHigher(), view.job?.started ?? 0);
  });
  const drawParallel = later(80, () => {
    if (!view.isClosed) parallel.set(ranked, metricName());
  });
  const drawTrials = within(redrawMs, () => {
    if (!view.isClosed) drawTrialsNow();
  });

  function drawTrialsNow(): void {
    ranked = trials.ranked(isHigher());
    board.set(ranked, {
      metric: metricName(),
      isHigher: isHigher(),
      isStaged: isStaged(specOf(view.job)),
      isFinished: view.job?.state === "finished",
    });
    drawParallel();
    showCurves();
    view.draw();
  }

  // ---- what comes from the server ----

  async function fetchTrials(): Promise<void> {
    let next: number | null = trials.from;
    while (next !== null && !view.isClosed) {
      const page: { trials: TrialRow[]; next: number | null } = await get(
        `${view.path}/trials?from=${next}&limit=${rowsAtOnce}`,
      );
      trials.add(page.trials);
      next = page.next;
    }
  }

  // It is written after the model.
  async function fetchInsight(): Promise<void> {
    if (!view.job?.files.model || searchOf(view.job).phase === "gathers") return;
    try {
      const found = await get<Insight>(`${view.path}/insight`);
      if (!view.isClosed) insight.set(found, searchOf(view.job).metric, (number) => trials.get(number));
    } catch (thrown) {
      if (!(thrown instanceof Problem)) throw thrown;
      if (!view.isClosed && thrown.status !== 404) insight.fail(textOf(thrown));
    }
  }

  let isProfiled = false;
  async function fetchProfile(job: Job): Promise<void> {
    const spec = specOf(job);
    if (isProfiled || !job.files.model || !spec.data) return;
    isProfiled = true;
    try {
      const profile = await profileOf(spec);
      if (profile && !view.isClosed) replace(predicting, predictForm(view.path, profile, spec));
    } catch (thrown) {
      isProfiled = false;
      if (!(thrown instanceof Problem)) throw thrown;
      replace(predicting, h("p", { class: "error" }, `The columns are not known: ${thrown.message}.`));
    }
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
      takeWorkers((await get<{ workers: JobWorker[] }>(`${view.path}/workers`)).workers);
    } catch {
      // The stream says when the server is gone.
    }
  }

  function takeWorkers(all: JobWorker[]): void {
    if (view.isClosed) return;
    allUnits = all.reduce((sum, worker) => sum + worker.units, 0);
    workers.set(all.slice().sort((a, b) => b.units - a.units || a.name.localeCompare(b.name)));
    view.draw();
  }

  const view: LiveJob = new LiveJob(frame, id, `Search ${id}`, {
    noun: "search",
    isLong: true,
    lookEveryMs,
    another: { text: "Clone", page: "/search" },
    goes: "Its trials, model and log",
    part: shareDone,
    sentence: summary,
    figures: figuresOf,
    facts: factsOf,
    resumeText: moreText,
    askResume: askMore,
    downloads: (job) => [searchDownloads(job, view.path)],
    updated(job, before) {
      const search = searchOf(job);
      const isOtherState = before !== null && before.state !== job.state;
      const isOtherPhase = before !== null && searchOf(before).phase !== search.phase;
      if (before === null || searchOf(before).metric !== search.metric) drawTrials();
      const isNewModel = job.files.model && !before?.files.model;
      if (isOtherState || isOtherPhase || isNewModel) void fetchInsight();
      if (isOtherState) void fetchRest();
      if (isOtherState || isNewModel) void fetchProfile(job);
      share.hidden = !mayChange(frame.server, job);
    },
    takeWorkers,
    async fetch() {
      await fetchTrials();
      return drawTrialsNow;
    },
    event(name, data) {
      if (name === "trial" && trials.add([data as TrialRow])) drawTrials();
    },
    look: () => void fetchWorkers(),
    close() {
      plots.close();
      parallel.close();
      curves.close();
      insight.close();
      endTheme();
    },
  });
  const isTried = (node: HTMLElement): HTMLElement => view.onceThere(node, () => trials.count > 0);
  return view.page(
    share,
    isTried(board.node),
    isTried(plots.node),
    isTried(card("Settings of the trials", parallel.node)),
    isTried(card("Learning curves", curves.node)),
    isTried(insight.node),
    isTried(card("Predict a row", predicting)),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "stack" },
        view.onceThere(card("Who contributes", workers.node), () => !workers.isEmpty),
        view.logCard(),
      ),
      isTried(card("Take it with you", view.downloads)),
    ),
  );
}

// The columns as the search sees them: with what was said of them.
async function profileOf(spec: Partial<SearchSpec>): Promise<Profile | null> {
  const set = `/datasets/${encodeURIComponent(spec.data ?? "")}`;
  const isCorrected = Boolean(spec.dialect) || Object.keys(spec.columns ?? {}).length > 0;
  if (!isCorrected) return (await get<Dataset>(set)).profile ?? null;
  const corrections = { columns: spec.columns ?? {}, dialect: spec.dialect ?? "" };
  return (await post<{ profile: Profile }>(`${set}/profile`, corrections)).profile;
}
