// latest.ts: a question to the server that is asked again whenever something changes, and of which only the
// last answer counts. Whoever needs that answer can wait for it. Pure.

export class Latest {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private abort = new AbortController();
  private answer: Promise<void> = Promise.resolve();
  private isPutOff = false;

  // ask: one question. What it gets when its signal is aborted is not to be used, failures included.
  constructor(
    private readonly waitMs: number,
    private readonly ask: (signal: AbortSignal) => Promise<void>,
  ) {}

  // When nothing more has changed for a while.
  soon(): void {
    clearTimeout(this.timer);
    this.isPutOff = true;
    this.timer = setTimeout(() => this.now(), this.waitMs);
  }

  now(): void {
    this.drop();
    this.abort = new AbortController();
    this.answer = this.ask(this.abort.signal);
  }

  // Neither asks what was put off nor uses an answer that is still to come.
  drop(): void {
    clearTimeout(this.timer);
    this.isPutOff = false;
    this.abort.abort();
  }

  // Asks at once what was put off. Back when the last answer is there, also of what was asked meanwhile.
  async settled(): Promise<void> {
    for (;;) {
      if (this.isPutOff) this.now();
      const { answer } = this;
      await answer;
      if (answer === this.answer && !this.isPutOff) return;
    }
  }
}
