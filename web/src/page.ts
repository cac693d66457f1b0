// page.ts: what a page is to the frame around it.

import type { LiveState } from "./live";
import type { ServerInfo } from "./types";

export interface Page {
  title: string;
  node: HTMLElement;
  close(): void;
}

// What a page gets from the frame.
export interface Frame {
  server: ServerInfo; // as of the last time that it was asked
  go(path: string): void;
  live(state: LiveState, retryMs: number, why: string, now: () => void): void; // of the page's stream
  updated(server: ServerInfo): void;
  title(text: string): void;
}
