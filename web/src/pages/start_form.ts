// start_form.ts: what the pages that start a job share: the form around their parts, and its end: Start, what
// went wrong, and who would work.

import { Problem, post, textOf } from "../api";
import { h, setText, type Child } from "../dom";
import { Fleet } from "../fleet";
import { counted } from "../format";
import type { Frame, Page } from "../page";
import { may, type Job } from "../types";

export interface StartOptions {
  title: string; // of the page, as the frame shows it
  heading: string;
  doing: string; // what one needs an invitation for
  noun: string; // "job"
}

export interface StartParts {
  clearErrors(): void;
  // What the job is submitted with, when everything that is still being asked is known; throws what is
  // wrong with a field. null: what is wrong is shown already.
  spec(): Promise<object | null>;
  // Puts what is wrong beside the field that it names; false when there is no such field.
  setError(problem: Problem): boolean;
  fill(): Promise<void>; // the form, at first
}

// The page for who may not host; null for who may.
export function refusal(frame: Frame, { title, heading, doing }: StartOptions): Page | null {
  if (may(frame.server.role, "host")) return null;
  const text = `Your invitation does not include ${doing}. Ask whoever gave it to you for one for hosts.`;
  return {
    title,
    node: h("div", { class: "page narrow" }, h("h1", { tabindex: -1 }, heading), h("p", null, text)),
    close: () => undefined,
  };
}

export class StartForm {
  readonly row: HTMLElement; // the end of the form
  private form: HTMLFormElement | null = null;
  private isStarting = false;
  private isClosed = false;
  private filled: Promise<void> = Promise.resolve();
  private readonly button = h("button", { class: "button main large", type: "submit" }, "Start");
  private readonly failure = h("p", { class: "error", role: "alert", hidden: true });
  private readonly idle = h("p", { class: "muted small", role: "status" });
  private readonly fleet: Fleet;

  constructor(
    private readonly frame: Frame,
    private readonly options: StartOptions,
    private readonly parts: StartParts,
  ) {
    this.row = h("div", { class: "startrow" }, this.button, h("div", null, this.failure, this.idle));
    this.fleet = new Fleet(frame, () => {
      const { idle, paused } = frame.server;
      const resting = paused > 0 ? ` (${counted(paused, "here is", "here are")} paused)` : "";
      setText(
        this.idle,
        idle === 0
          ? `No worker is idle now${resting}; the ${options.noun} waits until one comes.`
          : `${counted(idle, "worker is", "workers are")} idle now.`,
      );
    });
  }

  page(kind: string, ...content: Child[]): Page {
    const { title, heading } = this.options;
    const form = h(
      "form",
      { class: kind, novalidate: true },
      h("h1", { tabindex: -1 }, heading),
      ...content,
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.submit();
    });
    // Enter in a box should not start anything by accident.
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target instanceof HTMLInputElement) event.preventDefault();
    });
    this.form = form;
    this.filled = this.parts.fill();
    this.filled.catch((thrown: unknown) => this.show(thrown));
    return { title, node: form, close: () => this.close() };
  }

  private close(): void {
    this.isClosed = true;
    this.fleet.close();
  }

  private async submit(): Promise<void> {
    if (this.isStarting) return;
    this.setStarting(true);
    this.failure.hidden = true;
    this.parts.clearErrors();
    try {
      await this.filled;
      const spec = await this.parts.spec();
      if (!spec || this.isClosed) return;
      const { id } = await post<Job>("/jobs", spec);
      if (!this.isClosed) this.frame.go(`/jobs/${id}`);
    } catch (thrown) {
      this.show(thrown);
    } finally {
      this.setStarting(false);
    }
  }

  // The button keeps the focus: it is not switched off, it only does nothing.
  private setStarting(isStarting: boolean): void {
    this.isStarting = isStarting;
    setText(this.button, isStarting ? "Starting…" : "Start");
    if (isStarting) this.button.setAttribute("aria-disabled", "true");
    else this.button.removeAttribute("aria-disabled");
  }

  private show(thrown: unknown): void {
    if (thrown instanceof Problem && this.parts.setError(thrown)) {
      const wrong = this.form?.querySelector<HTMLElement>("[aria-invalid=true], .error:not([hidden])");
      wrong?.scrollIntoView({ block: "center" });
      wrong?.focus();
      return;
    }
    setText(this.failure, textOf(thrown));
    this.failure.hidden = false;
  }
}
