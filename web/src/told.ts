// told.ts: what a stream tells of something, beside answers about the same thing. An answer may have been written before
// something that the stream told while the answer was on its way, so what was told comes last. Pure.

export class Told<T extends object> {
  private last: T | null = null;
  private count = 0;

  // The stream tells.
  tell(what: T): T {
    this.count++;
    this.last = what;
    return what;
  }

  // The answer, with what was told since it was asked for over it.
  async answer(asked: Promise<T>): Promise<T> {
    const before = this.count;
    const answer = await asked;
    return this.count === before ? answer : { ...answer, ...this.last };
  }
}
