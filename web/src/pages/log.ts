// log.ts: the last lines of a job's log. It stays at its end while one looks at the end.

import { h } from "../dom";
import { clock } from "../format";
import type { LogLine } from "../types";

const linesMax = 1000;

export class Log {
  readonly node = h("div", {
    class: "log",
    tabindex: 0,
    role: "log",
    "aria-label": "Log",
    "aria-live": "off",
  });
  private last = 0;

  get isEmpty(): boolean {
    return this.last === 0;
  }

  // The number of the last line that is known.
  get after(): number {
    return this.last;
  }

  add(lines: LogLine[]): void {
    const atEnd = this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight < 40;
    for (const line of lines) {
      if (line.number <= this.last) continue;
      this.last = line.number;
      this.node.append(h("div", null, h("time", null, clock(line.time)), line.text));
    }
    while (this.node.childElementCount > linesMax) this.node.firstElementChild?.remove();
    if (atEnd) this.node.scrollTop = this.node.scrollHeight;
  }
}
