// live_job.ts: what the pages of jobs share, whatever the job is: the head with its name, state and buttons,
// the card that says how far it is, the log, and the stream that keeps all of it up to date. The page of a
// kind of job says what is special to it.

import { get, post, remove } from "../api";
import { Contents } from "../contents";
import { announce, eachFrame, h, replace, setText, type Child } from "../dom";
import { percent } from "../format";
import { explained } from "../help";
import { furtherProgress, wholeJob, type JobAsSent } from "../job_shape";
import { Live } from "../live";
import type { Frame, Page } from "../page";
import { ask, Bar, busy, button, setState } from "../parts";
import { pausedText } from "../standing";
import { Told } from "../told";
import { may, mayChange, type Job, type JobWorker, type LogLine, type Worker } from "../types";
import { Log } from "./log";

// A number of the job, by its name.
export type Figure = [
  name: string,
  text: string,
  more?: { isLarge?: boolean; below?: string; help?: string },
];

export interface JobKind {
  noun: string; // "job": the job is now running
  lookEveryMs: number;
  another: { text: string; page: string }; // the page that starts one like it
  goes: string; // what is removed with it
  part(job: Job): number; // that is done, from 0 to 1
  sentence(job: Job, now: number): string; // under the name
  figures(job: Job): Figure[];
  facts(job: Job): (string | false | null | undefined)[];
  resumeText(job: Job): string;
  askResume(job: Job): Promise<object | null>; // what to go on with; null: it was called off
  downloads(job: Job): Child[];
  // After every update, before the head is drawn.
  updated(job: Job, before: Job | null): void;
  takeWorkers(all: JobWorker[]): void;
  // Whatever else there is, whenever the stream begins. What comes back shows it; the job is known by then.
  fetch(): Promise<() => void>;
  event(name: string, data: unknown): void;
  look(): void; // now and then, while it runs
  settled?(): Promise<void>; // back when it asks the server for nothing more: the job is about to be deleted
  isLong?: boolean; // its page gets a list of contents
  close(): void;
}

function figurePair([name, , more]: Figure): HTMLElement {
  return h(
    "div",
    { class: more?.isLarge ? "large" : "" },
    h("dt", null, more?.help ? explained(name, more.help) : name),
    h("dd"),
    more?.below !== undefined && h("dd", { class: "below" }),
  );
}

export class LiveJob {
  job: Job | null = null;
  isClosed = false;
  readonly path: string;
  readonly log = new Log();
  readonly downloads = h("div", { class: "stack" });
  private readonly told = new Told<JobAsSent>();
  readonly draw = eachFrame(() => this.drawNow());
  private readonly title: HTMLElement;
  private readonly state = h("span");
  private readonly sentence = h("p", { class: "lead", role: "status" }, "…");
  private readonly help = h(
    "p",
    { class: "muted small", hidden: true },
    "It continues by itself as soon as a machine is there: ",
    h("a", { href: "/work" }, "how to lend one"),
    ".",
  );
  private readonly pausedList = h("ul", { class: "points small", hidden: true });
  private readonly bar = new Bar();
  private readonly figures = h("dl", { class: "figures" });
  private readonly facts = h("p", { class: "muted small" }, "…");
  private readonly actions = h("div", { class: "row actions" });
  private readonly failure = h("p", { class: "error", role: "alert" });
  private readonly content = h("div", { class: "stack" });
  private actionsFor = "";
  private figuresFor = "";
  private readonly panels: { node: HTMLElement; isThere(): boolean }[] = [];

  constructor(
    private readonly frame: Frame,
    private readonly id: number,
    private readonly name: string, // until its own is known
    private readonly kind: JobKind,
  ) {
    this.path = `/jobs/${id}`;
    this.title = h("h1", { tabindex: -1 }, name);
  }

  // Hides the node for as long as there is nothing in it: a job that waits is no wall of empty frames.
  onceThere(node: HTMLElement, isThere: () => boolean): HTMLElement {
    node.hidden = true;
    this.panels.push({ node, isThere });
    return node;
  }

  // The log, in a card of its own.
  logCard(kind = ""): HTMLElement {
    const node = h("section", { class: `card fill ${kind}`.trim() }, h("h2", null, "Log"), this.log.node);
    return this.onceThere(node, () => !this.log.isEmpty);
  }

  // With the cards of its kind below the first one. It is live from now on.
  page(...cards: Child[]): Page {
    replace(
      this.content,
      h(
        "div",
        { class: "card" },
        h("div", { class: "jobbar" }, this.bar.node),
        this.sentence,
        this.pausedList,
        this.help,
        this.figures,
        this.facts,
      ),
      ...cards,
    );
    const live: Live = new Live(`${this.path}/live`, {
      opened: () => this.fetchAll(),
      event: (name, data) => this.onEvent(name, data),
      state: (now, retryMs, why) => {
        this.frame.live(now, retryMs, why, () => live.now());
        if (now === "ended") this.showMissing(why);
      },
    });
    const timer = window.setInterval(() => {
      if (this.job?.state === "running" && !document.hidden) this.kind.look();
      if (this.job?.state === "waiting" && !document.hidden) void this.fetchPaused();
    }, this.kind.lookEveryMs);
    const head = h("div", { class: "row" }, this.title, this.state);
    const contents = this.kind.isLong ? new Contents(this.content) : null;
    const body = contents ? h("div", { class: "withcontents" }, contents.node, this.content) : this.content;
    return {
      title: this.name,
      node: h("div", { class: "page" }, h("div", { class: "pagehead" }, head, this.actions), body),
      close: () => {
        contents?.close();
        this.isClosed = true;
        clearInterval(timer);
        live.close();
        this.kind.close();
      },
    };
  }

  take(sent: JobAsSent): void {
    const before = this.job;
    const newer = wholeJob(sent);
    if (before && before.state !== newer.state) announce(`The ${this.kind.noun} is now ${newer.state}`);
    // Live updates may come without what it was submitted with.
    this.job = {
      ...newer,
      spec: { ...before?.spec, ...newer.spec },
      progress: furtherProgress(before?.progress ?? null, newer.progress),
    };
    this.kind.updated(this.job, before);
    this.draw();
  }

  private async fetchAll(): Promise<void> {
    const [job, workers, lines, show] = await Promise.all([
      this.told.answer(get<JobAsSent>(this.path)),
      get<{ workers: JobWorker[] }>(`${this.path}/workers`),
      get<{ lines: LogLine[] }>(`${this.path}/log?after=${this.log.after}`),
      this.kind.fetch(),
    ]);
    if (this.isClosed) return;
    this.take(job);
    this.kind.takeWorkers(workers.workers);
    this.log.add(lines.lines);
    show();
    if (this.job?.state === "waiting") void this.fetchPaused();
    this.draw();
  }

  // Whoever is here and does not work says why.
  private async fetchPaused(): Promise<void> {
    try {
      const { workers } = await get<{ workers: Worker[] }>("/workers?limit=1000");
      const lines = workers.filter((one) => one.state === "paused").map(pausedText);
      replace(this.pausedList, ...lines.map((line) => h("li", null, line)));
      this.draw();
    } catch {
      // The stream says when the server is gone.
    }
  }

  private onEvent(name: string, data: unknown): void {
    if (name === "job") this.take(this.told.tell(data as JobAsSent));
    else if (name === "workers") this.kind.takeWorkers((data as { workers: JobWorker[] }).workers);
    else if (name === "log") this.log.add([data as LogLine]);
    else if (name === "reset") void this.fetchAll().catch(() => undefined);
    else this.kind.event(name, data);
    this.draw();
  }

  private showMissing(text: string): void {
    setText(this.failure, text);
    replace(this.content, this.failure, h("a", { href: "/" }, "To the overview"));
  }

  private drawNow(): void {
    const { job, kind } = this;
    if (!job || this.isClosed) return;
    const part = kind.part(job);
    const isActive = job.state === "running" || job.state === "waiting";
    setText(this.title, job.name);
    this.frame.title(job.state === "running" ? `${percent(part)} ${job.name}` : job.name);
    setState(this.state, job.state);
    setText(this.sentence, kind.sentence(job, Date.now() / 1000));
    this.help.hidden = !isActive || (job.state === "running" && job.workers > 0);
    this.pausedList.hidden = job.state !== "waiting" || this.pausedList.childElementCount === 0;
    setText(this.facts, kind.facts(job).filter(Boolean).join(" · "));
    this.bar.set(part);
    this.setFigures(kind.figures(job));
    this.figures.hidden = job.state === "waiting" && job.started === null;
    this.setActions(job, isActive);
    for (const { node, isThere } of this.panels) node.hidden = !isThere();
  }

  // The names change seldom: with them the pairs are made anew, and what explains a name is closed.
  private setFigures(figures: Figure[]): void {
    const names = figures.map(([name]) => name).join("\n");
    if (names !== this.figuresFor) replace(this.figures, ...figures.map(figurePair));
    this.figuresFor = names;
    figures.forEach(([, text, more], i) => {
      const pair = this.figures.children[i] as HTMLElement;
      setText(pair.children[1] as Element, text);
      if (more?.below !== undefined) setText(pair.children[2] as Element, more.below);
    });
  }

  // What can be done depends on little: the buttons are made anew only when that changes.
  private setActions(job: Job, isActive: boolean): void {
    const { model, onnx, events } = job.files;
    const key = `${job.state} ${model} ${onnx} ${events} ${job.sha256 ?? ""}`;
    if (key === this.actionsFor) return;
    this.actionsFor = key;
    const { server } = this.frame;
    const { another } = this.kind;
    const owns = mayChange(server, job);
    const stop = button("Stop", "danger", () => void busy(stop, () => this.stop()));
    // What failed before anything was learned fails again: another try needs changes.
    const isHopeless = job.state === "failed" && this.kind.part(job) === 0;
    const resume = button(
      this.kind.resumeText(job),
      isHopeless ? "plain" : "main",
      () => void busy(resume, () => this.resume(job)),
    );
    const drop = button("Delete", "plain", () => void busy(drop, () => this.remove(job)));
    const hadFocus = this.actions.contains(document.activeElement);
    const again =
      may(server.role, "host") &&
      h(
        "a",
        { class: `button ${isHopeless ? "main" : "plain"}`, href: `${another.page}?from=${this.id}` },
        isHopeless ? "Start again with changes" : another.text,
      );
    replace(
      this.actions,
      owns && isActive && stop,
      isHopeless && again,
      owns && !isActive && resume,
      !isHopeless && again,
      owns && !isActive && drop,
    );
    if (hadFocus) (this.actions.querySelector<HTMLElement>("button, a") ?? this.title).focus();
    replace(this.downloads, ...this.kind.downloads(job));
  }

  private async stop(): Promise<void> {
    this.take(await this.told.answer(post<JobAsSent>(`${this.path}/stop`)));
  }

  private async resume(job: Job): Promise<void> {
    const more = await this.kind.askResume(job);
    if (more) this.take(await this.told.answer(post<JobAsSent>(`${this.path}/resume`, more)));
  }

  private async remove(job: Job): Promise<void> {
    const what = `${this.kind.goes} are removed from the server. This cannot be undone.`;
    if (!(await ask(`Delete “${job.name}”?`, what, "Delete"))) return;
    await this.kind.settled?.();
    await remove(this.path);
    this.frame.go("/");
  }
}
