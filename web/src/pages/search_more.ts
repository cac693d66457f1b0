// search_more.ts: asks how much longer a search that has ended should go on.

import { h } from "../dom";
import { Field } from "../fields";
import { count } from "../format";
import { askWith } from "../parts";
import { usualMore, type More } from "../search_spec";
import type { SearchSpec } from "../search_types";
import type { Job } from "../types";

export function moreText(job: Job): string {
  return job.state === "finished" ? "Search on" : "Resume";
}

// null when it was called off. One that was stopped may go on with what was left.
export async function askMore(job: Job): Promise<More | null> {
  const spec = job.spec as Partial<SearchSpec>;
  const isFinished = job.state === "finished";
  const minutes = h("input", { type: "number", name: "more-minutes", min: 0.1, step: "any", max: 1_000_000 });
  const trials = h("input", {
    type: "number",
    name: "more-trials",
    min: Math.max(spec.trials ?? 0, 1),
    max: 1e9,
  });
  const usual = isFinished ? usualMore(spec, job.search) : {};
  if (usual.trials) trials.value = String(usual.trials);
  if (usual.budget_s) minutes.value = String(Number((usual.budget_s / 60).toPrecision(3)));
  const byMinutes = new Field("Minutes more", minutes, isFinished ? "" : "Empty: what was left.");
  const byTrials = new Field(
    "Trials in all, at most",
    trials,
    spec.trials ? `It had ${count(spec.trials)}.` : "Empty: as many as the time allows.",
  );
  const content = [byMinutes.node, byTrials.node];
  if (!(await askWith("Search on", moreText(job), "main", content, minutes))) return null;
  const more: More = {};
  if (minutes.value !== "") more.budget_s = Number(minutes.value) * 60;
  if (trials.value !== "") more.trials = Number(trials.value);
  return more;
}
