// jobs_list.ts: a list of jobs in order and filtered, and what each of them comes to in it. Pure.

import { agentAbout, agentOf, agentResult, agentShare, agentSpecOf } from "./agent_spec";
import { none, value } from "./format";
import { shareDone } from "./job_shape";
import { metricText, searchScores } from "./search_spec";
import type { Job, JobState, Progress } from "./types";

export type JobKind = "train" | "search" | "agent";
export const kindNames: Record<JobKind, string> = { train: "trainings", search: "searches", agent: "agents" };

export function kindOf(job: Pick<Job, "kind">): JobKind {
  return job.kind ?? "train";
}

export function part(progress: Progress): number {
  return progress.steps > 0 ? Math.min(progress.step / progress.steps, 1) : 0;
}

// A search tells of trials, an agent of steps, a training of rounds.
export function doneOf(job: Job): number {
  if (job.kind === "agent") return agentShare(job);
  return job.kind === "search" ? shareDone(job) : part(job.progress);
}

export function speedOf(job: Job): number {
  if (job.kind === "agent") return job.state === "running" ? agentOf(job).steps_per_second : 0;
  return job.progress.samples_per_s;
}

// In small letters below the name.
export function aboutOf(job: Job): string {
  if (job.kind === "agent") return agentAbout(agentSpecOf(job));
  if (!job.spec.data) return "";
  return job.kind === "search" ? `search on ${job.spec.data}` : `on ${job.spec.data}`;
}

export function resultOf(job: Job): number {
  const { agent, search, progress } = job;
  const result = agent
    ? (agent.score ?? agent.return_mean)
    : search
      ? searchScores(search).main.score
      : (progress.held_out_metric ?? progress.metric);
  return result ?? -Infinity;
}

// The better, the larger, also of errors. Errors stand behind shares that are right.
function worthOf(job: Job): number {
  const isError = job.search
    ? !job.search.higher_is_better
    : job.progress.metric_name === "rmse" || job.progress.metric_name === "perplexity";
  const result = resultOf(job);
  return isError && Number.isFinite(result) ? -result : result;
}

export function resultText(job: Job): string {
  if (job.kind === "agent") return agentResult(agentOf(job)) || none;
  if (job.search) {
    const { score, short: rows } = searchScores(job.search).main;
    return score === null ? none : `${value(score)} ${rows} ${metricText(job.search.metric)}`;
  }
  const { metric_name, held_out_metric, metric } = job.progress;
  const shown = held_out_metric ?? metric;
  return shown === null ? none : `${value(shown)}${metric_name ? ` ${metric_name}` : ""}`;
}

// ---- order ----

export const sorts = {
  active: "Running first",
  newest: "Newest first",
  oldest: "Oldest first",
  name: "By name",
  progress: "By progress",
  result: "Best result first",
};
export type JobSort = keyof typeof sorts;

const stateRanks: JobState[] = ["running", "waiting", "stopped", "finished", "failed"];

export function stateRank(state: JobState): number {
  return stateRanks.indexOf(state);
}

// What runs stands before what waits, and both before what has ended; among themselves the newest first.
function compareActive(a: Job, b: Job): number {
  const rank = (job: Job): number => Math.min(stateRank(job.state), 2);
  return rank(a) - rank(b) || b.id - a.id;
}

const compares: Record<JobSort, (a: Job, b: Job) => number> = {
  active: compareActive,
  newest: (a, b) => b.id - a.id,
  oldest: (a, b) => a.id - b.id,
  name: (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }) || b.id - a.id,
  progress: (a, b) => doneOf(b) - doneOf(a) || b.id - a.id,
  result: (a, b) => (worthOf(a) === worthOf(b) ? b.id - a.id : worthOf(b) > worthOf(a) ? 1 : -1),
};

export function inOrder(jobs: Iterable<Job>, sort: JobSort): Job[] {
  return [...jobs].sort(compares[sort]);
}

// ---- filters ----

export interface JobFilter {
  text: string;
  state: string; // "": all
  kind: string; // likewise
}

// Every word is to be found somewhere, a number as that of the job.
export function passes(job: Job, filter: JobFilter): boolean {
  if (filter.state && filter.state !== job.state) return false;
  if (filter.kind && filter.kind !== kindOf(job)) return false;
  const all = [job.name, job.host, aboutOf(job), `#${job.id}`, String(job.id)].join("\n").toLowerCase();
  return filter.text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}
