// live_job.ts: what the pages of jobs share, whatever the job is: the head with its name, state and buttons,
// the card that says how far it is, the log, and the stream that keeps all of it up to date. The page of a
// kind of job says what is special to it.

import { get, post, remove } from "../api";
import { announce, eachFrame, h, replace, setText, type Child } from "../dom";
import { percent } from "../format";
import { furtherProgress, wholeJob, type JobAsSent } from "../job_shape";
import { Live } from "../live";
import type { Frame, Page } from "../page";
import { ask, Bar, busy, button, setState } from "../parts";
import { may, mayChange, type Job, type JobWorker, type LogLine } from "../types";
import { Log } from "./log";

export interface JobKind {
  noun: string; // "job": the job is now running
  lookEveryMs: number;
  another: { text: string; page: string }; // the page that starts one like it
  goes: string; // what is removed with it
  part(job: Job): number; // that is done, from 0 to 1
  sentence(job: Job, now: number): string; // under the name
  figures(job: Job): [name: string, text: string][];
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
  close(): void;
}

export class LiveJob {
  job: Job | null = null;
  isClosed = false;
  readonly path: string;
  readonly log = new Log();
  readonly downloads = h("div", { class: "stack" });
  readonly draw = eachFrame(() => this.drawNow());
  private readonly title: HTMLElement;
  private readonly state = h("span");
  private readonly sentence = h("p", { class: "lead", role: "status" }, "…");
  private readonly help = h(
    "p",
    { class: "muted small", hidden: true },
    "It goes on by itself as soon as a machine is there: ",
    h("a", { href: "/work" }, "how to lend one"),
    ".",
  );
  private readonly bar = new Bar();
  private readonly figures = h("dl", { class: "figures" });
  private readonly facts = h("p", { class: "muted small" }, "…");
  private readonly actions = h("div", { class: "row actions" });
  private readonly failure = h("p", { class: "error", role: "alert" });
  private readonly content = h("div", { class: "stack" });
  private actionsFor = "";

  constructor(
    private readonly frame: Frame,
    private readonly id: number,
    private readonly name: string, // until its own is known
    private readonly kind: JobKind,
  ) {
    this.path = `/jobs/${id}`;
    this.title = h("h1", { tabindex: -1 }, name);
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
    }, this.kind.lookEveryMs);
    const head = h("div", { class: "row" }, this.title, this.state);
    return {
      title: this.name,
      node: h("div", { class: "page" }, h("div", { class: "pagehead" }, head, this.actions), this.content),
      close: () => {
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
      get<JobAsSent>(this.path),
      get<{ workers: JobWorker[] }>(`${this.path}/workers`),
      get<{ lines: LogLine[] }>(`${this.path}/log?after=${this.log.after}`),
      this.kind.fetch(),
    ]);
    if (this.isClosed) return;
    this.take(job);
    this.kind.takeWorkers(workers.workers);
    this.log.add(lines.lines);
    show();
  }

  private onEvent(name: string, data: unknown): void {
    if (name === "job") this.take(data as JobAsSent);
    else if (name === "workers") this.kind.takeWorkers((data as { workers: JobWorker[] }).workers);
    else if (name === "log") this.log.add([data as LogLine]);
    else if (name === "reset") void this.fetchAll().catch(() => undefined);
    else this.kind.event(name, data);
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
    this.help.hidden = !isActive || job.workers > 0;
    setText(this.facts, kind.facts(job).filter(Boolean).join(" · "));
    this.bar.set(part);
    this.setFigures(kind.figures(job));
    this.setActions(job, isActive);
  }

  private setFigures(pairs: [name: string, text: string][]): void {
    if (this.figures.childElementCount !== pairs.length)
      replace(this.figures, ...pairs.map(() => h("div", null, h("dt"), h("dd"))));
    pairs.forEach(([name, text], i) => {
      const pair = this.figures.children[i] as HTMLElement;
      setText(pair.children[0] as Element, name);
      setText(pair.children[1] as Element, text);
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
    const resume = button(
      this.kind.resumeText(job),
      "main",
      () => void busy(resume, () => this.resume(job)),
    );
    const drop = button("Delete", "plain", () => void busy(drop, () => this.remove(job)));
    const hadFocus = this.actions.contains(document.activeElement);
    replace(
      this.actions,
      owns && isActive && stop,
      owns && !isActive && resume,
      may(server.role, "host") &&
        h("a", { class: "button plain", href: `${another.page}?from=${this.id}` }, another.text),
      owns && !isActive && drop,
    );
    if (hadFocus) (this.actions.querySelector<HTMLElement>("button, a") ?? this.title).focus();
    replace(this.downloads, ...this.kind.downloads(job));
  }

  private async stop(): Promise<void> {
    this.take(await post<JobAsSent>(`${this.path}/stop`));
  }

  private async resume(job: Job): Promise<void> {
    const more = await this.kind.askResume(job);
    if (more) this.take(await post<JobAsSent>(`${this.path}/resume`, more));
  }

  private async remove(job: Job): Promise<void> {
    const what = `${this.kind.goes} are removed from the server. This cannot be undone.`;
    if (!(await ask(`Delete “${job.name}”?`, what, "Delete"))) return;
    await remove(this.path);
    this.frame.go("/");
  }
}
