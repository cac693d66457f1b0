// any_job.ts: the page of a job, whatever its kind is: a training's, a search's or an agent's.

import { get } from "../api";
import { h, replace } from "../dom";
import type { Frame, Page } from "../page";
import type { Job } from "../types";
import { agentJobPage } from "./agent_job";
import { jobPage } from "./job";
import { searchJobPage } from "./search_job";

export function anyJobPage(frame: Frame, id: number): Page {
  const title = `Job ${id}`;
  const holder = h("div", null, h("div", { class: "page" }, h("h1", { tabindex: -1 }, title)));
  let inside: Page | null = null;
  let isClosed = false;

  function show(make: (frame: Frame, id: number) => Page): void {
    if (isClosed) return;
    const hadFocus = holder.contains(document.activeElement);
    inside = make(frame, id);
    replace(holder, inside.node);
    if (hadFocus) holder.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
  }
  const pages = { train: jobPage, search: searchJobPage, agent: agentJobPage };
  // A job that cannot be seen is the training's page to explain.
  get<Job>(`/jobs/${id}`).then(
    (job) => show(pages[job.kind ?? "train"] ?? jobPage),
    () => show(jobPage),
  );
  return {
    title,
    node: holder,
    close() {
      isClosed = true;
      inside?.close();
    },
  };
}
