// search_more.ts: asks how much longer a search that has ended should go on.

import { h } from "../dom";
import { Field } from "../fields";
import { count } from "../format";
import { usualMore, type More } from "../search_spec";
import type { SearchSpec } from "../search_types";
import type { Job } from "../types";

// null when it was called off. One that was stopped may go on with what was left.
export function askMore(job: Job): Promise<More | null> {
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
  return new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { class: "ask", "aria-label": "Search on" },
      h(
        "form",
        { method: "dialog" },
        h("h2", null, "Search on"),
        byMinutes.node,
        byTrials.node,
        h(
          "div",
          { class: "row end" },
          h("button", { class: "button plain", value: "no", formnovalidate: true }, "Cancel"),
          h("button", { class: "button main", value: "yes" }, "Search on"),
        ),
      ),
    );
    dialog.addEventListener("close", () => {
      const more: More = {};
      if (minutes.value !== "") more.budget_s = Number(minutes.value) * 60;
      if (trials.value !== "") more.trials = Number(trials.value);
      resolve(dialog.returnValue === "yes" ? more : null);
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
    minutes.select();
  });
}
