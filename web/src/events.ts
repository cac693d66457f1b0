// events.ts: the parser of text/event-stream. Bytes go in as they come, whole events come out. Pure.

export interface StreamEvent {
  name: string;
  data: string;
}

// An event that never ends must not eat all memory.
const bufferMax = 64 << 20;

export class EventParser {
  private readonly decoder = new TextDecoder();
  private rest = "";
  private name = "";
  private data: string[] = [];

  // The events that these bytes complete.
  feed(bytes: Uint8Array): StreamEvent[] {
    this.rest += this.decoder.decode(bytes, { stream: true });
    if (this.rest.length > bufferMax) throw new Error("an event of the server is too long");
    const events: StreamEvent[] = [];
    let start = 0;
    for (;;) {
      const end = endOfLine(this.rest, start);
      if (!end) break;
      this.line(this.rest.slice(start, end.at), events);
      start = end.next;
    }
    this.rest = this.rest.slice(start);
    return events;
  }

  private line(line: string, events: StreamEvent[]): void {
    if (line === "") {
      if (this.data.length > 0) events.push({ name: this.name || "message", data: this.data.join("\n") });
      this.name = "";
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.name = value;
    else if (field === "data") this.data.push(value);
  }
}

// Lines end with \n, \r\n or \r. A \r that is the last we have may be half of \r\n: wait for more.
function endOfLine(text: string, from: number): { at: number; next: number } | null {
  for (let i = from; i < text.length; i++) {
    const c = text[i];
    if (c === "\n") return { at: i, next: i + 1 };
    if (c !== "\r") continue;
    if (i + 1 === text.length) return null;
    return { at: i, next: text[i + 1] === "\n" ? i + 2 : i + 1 };
  }
  return null;
}
