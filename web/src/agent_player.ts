// agent_player.ts: an agent at play: an episode of one of its checkpoints on a canvas, at the pace of its
// environment, with what a player of films has. When an episode is over the next begins; who looks at the
// newest checkpoint always sees the newest. Nothing moves and nothing is asked for while it is out of sight.

import { nearestSteps } from "./agent_curve";
import { drawPicture, palette, type Palette } from "./agent_draw";
import { between, endText, returnsOf, returnText } from "./agent_picture";
import type { Checkpoint, Episode } from "./agent_types";
import { download, get, Problem, textOf } from "./api";
import { h, newId, setText, svg } from "./dom";
import { count, counted } from "./format";
import { Latest } from "./latest";
import { busy, button } from "./parts";

const restMs = 1200; // after an episode
const againMs = 5000; // after an answer that was none
const labelEveryMs = 1000; // what is said of the picture to who cannot see it
const enoughS = 5; // of an agent that is not the newest any more
const chooseMs = 200; // after a slider has come to rest
const seedMax = 1_000_000_000;
const speeds = [0.25, 0.5, 1, 2, 4];
const waitingText = "The agent can be watched as soon as its first policy is saved.";

const icons = { play: "M7 4.5v15l13-7.5Z", pause: "M6 4.5h4v15H6Zm8 0h4v15h-4Z" };

export interface PlayerOptions {
  path: string; // of the job
  name(): string; // for files
  shown(steps: number): void; // another one is played, which has learned from so many
}

export class Player {
  readonly node: HTMLElement;
  readonly now: HTMLElement; // the step and the return so far, for a head
  private checkpoints: Checkpoint[] = [];
  private chosen: number | null = null; // steps of a checkpoint; null: the newest
  private episode: Episode | null = null;
  private returns: number[] = [];
  private head = 0; // pictures since the beginning, and a part of the next
  private isOn = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  private isSeen = false;
  private isClosed = false;
  private isAsking = false;
  private frame = 0;
  private lastMs = 0;
  private labelledMs = 0;
  private resting = 0;
  private inks: Palette = palette();

  private readonly canvas = h("canvas", { class: "stage", role: "img", tabindex: 0 });
  private readonly step = h("span");
  private readonly sum = h("span");
  private readonly over = h("p", { class: "stagetext" }, waitingText);
  private readonly stage = h("div", { class: "stagebox" }, this.canvas, this.over);
  private readonly toggle = h("button", { type: "button", class: "button main round" });
  private readonly scrub = h("input", {
    type: "range",
    min: 0,
    max: 0,
    step: 1,
    "aria-label": "Step of the episode",
  });
  private readonly speed = h("select", { "aria-label": "Speed", class: "short" });
  private readonly seed = h("input", {
    type: "number",
    min: 0,
    max: seedMax,
    step: 1,
    value: 1,
    class: "short",
  });
  private readonly seedError = h("p", {
    class: "error",
    role: "alert",
    hidden: true,
    id: newId("seed-error"),
  });
  private readonly slider = h("input", {
    type: "range",
    min: 0,
    max: 0,
    step: 1,
    "aria-label": "Checkpoint",
  });
  private readonly which = h("p", { class: "which" });
  private readonly newest = button("Newest", "plain", () => this.choose(null));
  private readonly asked = new Latest(chooseMs, (signal) => this.fetch(signal));
  private readonly sizes = new ResizeObserver(() => this.draw());
  private readonly sight = new IntersectionObserver((entries) => {
    this.isSeen = entries[entries.length - 1]?.isIntersecting ?? false;
    this.wake();
  });

  constructor(private readonly options: PlayerOptions) {
    this.node = h("div", { class: "stack player" }, this.stage, this.controls(), this.chooser());
    this.now = h("p", { class: "hud", "aria-hidden": "true" }, this.step, this.sum);
    this.canvas.setAttribute("aria-label", waitingText);
    this.canvas.addEventListener("click", () => this.setOn(!this.isOn));
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    this.toggle.addEventListener("click", () => this.setOn(!this.isOn));
    this.scrub.addEventListener("input", () => this.seek(Number(this.scrub.value)));
    this.seed.addEventListener("change", () => this.takeSeed());
    this.seed.addEventListener("input", () => this.sayOfSeed(""));
    this.slider.addEventListener("input", () => this.slide());
    this.showToggle();
    this.showChoice();
    this.sizes.observe(this.canvas);
    this.sight.observe(this.stage);
  }

  // All that there are, in the order of their steps.
  set(checkpoints: Checkpoint[]): void {
    this.checkpoints = checkpoints;
    // They are thinned out: for one that is gone its neighbour will do.
    if (this.chosen !== null) this.chosen = nearestSteps(checkpoints, this.chosen);
    this.showChoice();
    if (this.isOn && !this.isAsking && (!this.episode || this.isOutrun())) this.ask();
  }

  // steps: of a checkpoint; null: the newest, also of those to come.
  choose(steps: number | null): void {
    this.chosen = steps;
    this.isOn = true;
    this.showToggle();
    this.showChoice();
    this.asked.now();
  }

  repaint(): void {
    this.inks = palette();
    this.draw();
  }

  // Pauses, so that it asks for nothing by itself. Back when nothing is asked any more.
  async settled(): Promise<void> {
    this.setOn(false);
    await this.asked.settled();
  }

  close(): void {
    this.isClosed = true;
    cancelAnimationFrame(this.frame);
    clearTimeout(this.resting);
    this.asked.drop();
    this.sizes.disconnect();
    this.sight.disconnect();
  }

  // ---- its parts ----

  private controls(): HTMLElement {
    for (const speed of speeds) this.speed.append(h("option", { value: speed }, `${speed}×`));
    this.speed.value = "1";
    const seedId = newId("seed");
    this.seed.id = seedId;
    this.seed.setAttribute("aria-describedby", this.seedError.id);
    const another = button("Another episode", "plain", () => this.another());
    another.classList.add("small");
    return h(
      "div",
      { class: "controls" },
      this.toggle,
      this.scrub,
      h(
        "div",
        { class: "row" },
        this.speed,
        h("label", { for: seedId, class: "small muted" }, "Seed"),
        this.seed,
        another,
      ),
      this.seedError,
    );
  }

  private chooser(): HTMLElement {
    const save: HTMLButtonElement = button(
      "Download",
      "plain",
      () =>
        void busy(save, async () => {
          const playing = this.episode;
          if (!playing) throw new Error("there is no checkpoint yet");
          await download(
            `${this.options.path}/checkpoints/${playing.steps}`,
            `${this.options.name()}-${playing.steps}.safetensors`,
          );
        }),
    );
    for (const one of [this.newest, save]) one.classList.add("small");
    this.newest.title = "Follow the newest checkpoint";
    save.title = "This checkpoint, as a file";
    return h(
      "div",
      { class: "chooser" },
      this.which,
      this.slider,
      h("div", { class: "row" }, this.newest, save),
    );
  }

  // ---- which checkpoint ----

  private current(): Checkpoint | null {
    const last = this.checkpoints[this.checkpoints.length - 1] ?? null;
    if (this.chosen === null) return last;
    return this.checkpoints.find((one) => one.steps === this.chosen) ?? last;
  }

  // Who follows the newest looks at an older one still.
  private isBehind(): boolean {
    const newest = this.current();
    return this.chosen === null && this.episode !== null && this.episode.steps < (newest?.steps ?? 0);
  }

  // Who follows the newest has seen enough of an older one after a while.
  private isOutrun(): boolean {
    const { episode } = this;
    if (!this.isOn || !episode || !this.isBehind()) return false;
    return this.head / (episode.pace * Number(this.speed.value)) > enoughS;
  }

  private slide(): void {
    const at = Number(this.slider.value);
    const isLast = at >= this.checkpoints.length - 1;
    this.chosen = isLast ? null : (this.checkpoints[at]?.steps ?? null);
    this.isOn = true;
    this.showToggle();
    this.showChoice();
    this.asked.soon();
  }

  private showChoice(): void {
    const current = this.current();
    const last = Math.max(this.checkpoints.length - 1, 0);
    const at = current ? this.checkpoints.indexOf(current) : 0;
    this.slider.max = String(last);
    this.slider.value = String(at);
    this.slider.disabled = last === 0;
    this.slider.style.setProperty("--filled", `${last > 0 ? (100 * at) / last : 100}%`);
    this.newest.disabled = this.chosen === null && !this.isBehind();
    const text = current ? this.choiceText(current, at, last + 1) : "No checkpoint yet";
    setText(this.which, text);
    this.slider.setAttribute("aria-valuetext", text);
  }

  private choiceText(current: Checkpoint, at: number, all: number): string {
    const steps = counted(current.steps, "step");
    if (this.chosen !== null) return `Checkpoint ${at + 1} of ${all}, after ${steps}`;
    if (!this.episode || !this.isBehind()) return `Newest checkpoint, after ${steps}`;
    return `After ${counted(this.episode.steps, "step")}; the newest has ${count(current.steps)}`;
  }

  // ---- what comes from the server ----

  private ask(): void {
    if (this.current() && this.isSeen && !this.isClosed) this.asked.now();
  }

  // What was typed: an episode begins with it, or it is said why not.
  private takeSeed(): void {
    const isGood = this.seed.value !== "" && this.seed.validity.valid;
    this.sayOfSeed(isGood ? "" : `The seed is a whole number from 0 to ${count(seedMax)}.`);
    if (isGood) this.asked.now();
  }

  private sayOfSeed(wrong: string): void {
    setText(this.seedError, wrong);
    this.seedError.hidden = wrong === "";
    if (wrong) this.seed.setAttribute("aria-invalid", "true");
    else this.seed.removeAttribute("aria-invalid");
  }

  private another(): void {
    const before = this.seed.validity.valid ? Number(this.seed.value) : 0;
    this.seed.value = String(before < seedMax ? before + 1 : 0);
    this.sayOfSeed("");
    this.isOn = true;
    this.showToggle();
    this.asked.now();
  }

  private async fetch(signal: AbortSignal): Promise<void> {
    const checkpoint = this.current();
    if (!checkpoint) return;
    this.isAsking = true;
    clearTimeout(this.resting);
    try {
      const episode = await this.fetchEpisode(checkpoint.steps, signal);
      if (!signal.aborted && !this.isClosed) this.begin(episode);
    } catch (thrown) {
      if (!signal.aborted && !this.isClosed) this.fail(textOf(thrown));
    } finally {
      if (!signal.aborted) this.isAsking = false;
    }
  }

  // Checkpoints are thinned out: the one that was chosen may be gone, and so may the one that was the newest.
  private async fetchEpisode(steps: number, signal: AbortSignal): Promise<Episode> {
    const seed = Math.max(Math.trunc(Number(this.seed.value) || 0), 0);
    const path = (which: number | string): string =>
      `${this.options.path}/checkpoints/${which}/episode?seed=${seed}`;
    if (this.chosen === null) return await get<Episode>(path("newest"), signal);
    try {
      return await get<Episode>(path(steps), signal);
    } catch (thrown) {
      if (!(thrown instanceof Problem && thrown.status === 404)) throw thrown;
      return await get<Episode>(path("newest"), signal);
    }
  }

  private begin(episode: Episode): void {
    this.episode = episode;
    this.returns = returnsOf(episode.rewards);
    this.head = 0;
    this.labelledMs = 0;
    this.scrub.max = String(this.length);
    this.say("");
    this.showChoice();
    this.options.shown(episode.steps);
    this.draw();
    this.wake();
  }

  private fail(text: string): void {
    this.say(`No episode: ${text}.`);
    if (!this.episode) this.canvas.setAttribute("aria-label", this.over.textContent ?? "");
    clearTimeout(this.resting);
    this.resting = window.setTimeout(() => {
      if (this.isOn && !this.isAsking) this.ask();
    }, againMs);
  }

  private say(text: string): void {
    setText(this.over, text);
    this.over.hidden = text === "";
  }

  // ---- play ----

  // Steps of the episode.
  private get length(): number {
    return this.episode?.rewards.length ?? 0;
  }

  private setOn(isOn: boolean): void {
    this.isOn = isOn;
    this.showToggle();
    if (isOn && this.episode && this.head >= this.length) this.another();
    else if (!isOn) clearTimeout(this.resting);
    this.wake();
    if (!isOn) this.label();
  }

  private showToggle(): void {
    this.toggle.setAttribute("aria-label", this.isOn ? "Pause" : "Play");
    this.toggle.replaceChildren(
      svg(
        "svg",
        { viewBox: "0 0 24 24", "aria-hidden": "true" },
        svg("path", { d: this.isOn ? icons.pause : icons.play }),
      ),
    );
  }

  // Space plays and pauses; the arrows go a step, which is easier to see while it stands.
  private press(event: KeyboardEvent): void {
    const way = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (event.key === " ") this.setOn(!this.isOn);
    else if (way !== 0) this.seek(Math.floor(this.head) + way);
    else return;
    event.preventDefault();
  }

  private seek(step: number): void {
    if (!this.episode) return;
    this.isOn = false;
    clearTimeout(this.resting);
    this.showToggle();
    this.head = Math.min(Math.max(step, 0), this.length);
    this.say(this.head >= this.length ? endText(this.episode) : "");
    this.draw();
    this.label();
  }

  private wake(): void {
    cancelAnimationFrame(this.frame);
    if (this.isClosed || !this.isSeen) return;
    if (!this.episode) {
      if (!this.isAsking) this.ask();
      return;
    }
    if (!this.isOn) return;
    this.lastMs = 0;
    this.frame = requestAnimationFrame(this.tick);
  }

  private readonly tick = (now: number): void => {
    const { episode } = this;
    if (!episode || !this.isOn || !this.isSeen || this.isClosed) return;
    // A page that was away for long goes on where it was.
    const passed = this.lastMs === 0 ? 0 : Math.min(now - this.lastMs, 250);
    this.lastMs = now;
    this.head += (passed / 1000) * episode.pace * Number(this.speed.value);
    if (now - this.labelledMs > labelEveryMs) {
      this.labelledMs = now;
      this.label();
      if (!this.isAsking && this.isOutrun()) this.ask();
    }
    if (this.head >= this.length) {
      this.head = this.length;
      this.say(endText(episode));
      this.draw();
      this.label();
      this.restThenGoOn();
      return;
    }
    this.draw();
    this.frame = requestAnimationFrame(this.tick);
  };

  private restThenGoOn(): void {
    clearTimeout(this.resting);
    this.resting = window.setTimeout(() => {
      if (this.isOn && this.isSeen && !this.isClosed) this.another();
    }, restMs);
  }

  // ---- what is seen ----

  private draw(): void {
    const { episode } = this;
    if (!episode || this.isClosed) return;
    const at = Math.min(Math.floor(this.head), episode.pictures.length - 1);
    const now = episode.pictures[at];
    if (!now) return;
    const next = episode.pictures[at + 1];
    const part = Math.min(this.head - at, 1);
    drawPicture(this.canvas, now.view, next ? between(now, next, part) : now.shapes, this.inks);
    const done = Math.floor(this.head);
    setText(this.step, `step ${count(done)} of ${count(this.length)}`);
    setText(this.sum, `return ${returnText(this.returns[done])}`);
    this.scrub.value = String(done);
    this.scrub.style.setProperty("--filled", `${(100 * this.head) / Math.max(this.length, 1)}%`);
  }

  private label(): void {
    const { episode } = this;
    if (!episode) return;
    const done = Math.floor(this.head);
    const text = `step ${count(done)} of ${count(this.length)}, return ${returnText(this.returns[done])}`;
    this.canvas.setAttribute(
      "aria-label",
      `${episode.env}, played after ${counted(episode.steps, "step")} of learning: ${text}`,
    );
    this.scrub.setAttribute("aria-valuetext", text);
  }
}
