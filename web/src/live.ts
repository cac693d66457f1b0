// live.ts: a stream of live updates that comes back by itself.
//
// After every connection, the first one too, `opened` asks for the whole state; events that come meanwhile
// wait. While the page is hidden for long the stream is closed: browsers allow few connections to a server,
// and pages that nobody looks at should not use them up.

import { openStream, Problem } from "./api";
import { EventParser } from "./events";

export type LiveState = "connecting" | "connected" | "lost" | "ended";

export interface LiveHandlers {
  opened(): Promise<void>;
  event(name: string, data: unknown): void;
  state(state: LiveState, retryMs: number, why: string): void;
}

const silenceMsMax = 40_000; // the server says something every 15 s
const hiddenMsMax = 30_000;

// The pause before attempt n, counted from 0: twice as long each time, with some chance in it.
export function pauseMs(attempt: number, chance: number): number {
  return Math.min(500 * 2 ** attempt, 15_000) * (0.75 + 0.5 * chance);
}

export class Live {
  private abort = new AbortController();
  private attempt = 0;
  private retry = 0;
  private hiding = 0;
  private closed = false;
  private running = false;

  constructor(
    private readonly path: string,
    private readonly handlers: LiveHandlers,
  ) {
    document.addEventListener("visibilitychange", this.look);
    window.addEventListener("online", this.now);
    void this.run();
  }

  close(): void {
    this.closed = true;
    document.removeEventListener("visibilitychange", this.look);
    window.removeEventListener("online", this.now);
    clearTimeout(this.retry);
    clearTimeout(this.hiding);
    this.abort.abort();
  }

  // Tries again without waiting.
  readonly now = (): void => {
    if (this.closed || this.running) return;
    clearTimeout(this.retry);
    void this.run();
  };

  private readonly look = (): void => {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = window.setTimeout(() => this.abort.abort(), hiddenMsMax);
    else this.now();
  };

  private async run(): Promise<void> {
    this.running = true;
    this.abort = new AbortController();
    let why = "the server closed the connection";
    let ended = false;
    try {
      await this.follow();
    } catch (thrown) {
      why = thrown instanceof Problem ? thrown.message : "the connection broke";
      // Gone, or not for us: asking again would not help.
      ended = thrown instanceof Problem && [401, 403, 404].includes(thrown.status);
    }
    this.abort.abort();
    this.running = false;
    if (this.closed) return;
    if (ended) {
      this.handlers.state("ended", 0, why);
      return;
    }
    if (document.hidden) return; // `look` goes on
    const pause = pauseMs(this.attempt++, Math.random());
    this.handlers.state("lost", pause, why);
    this.retry = window.setTimeout(this.now, pause);
  }

  private async follow(): Promise<void> {
    const signal = this.abort.signal;
    if (this.attempt === 0) this.handlers.state("connecting", 0, "");
    const reader = (await openStream(this.path, signal)).getReader();
    await this.handlers.opened();
    if (signal.aborted) return;
    this.attempt = 0;
    this.handlers.state("connected", 0, "");
    const parser = new EventParser();
    let watchdog = 0;
    const heard = (): void => {
      clearTimeout(watchdog);
      watchdog = window.setTimeout(() => this.abort.abort(), silenceMsMax);
    };
    try {
      heard();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || signal.aborted) return;
        heard();
        for (const event of parser.feed(value)) this.handlers.event(event.name, JSON.parse(event.data));
      }
    } finally {
      clearTimeout(watchdog);
      reader.cancel().catch(() => undefined);
    }
  }
}
