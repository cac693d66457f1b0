// parts.ts: small pieces that several pages show: states, progress, commands to copy, questions, notices.

import { download, textOf } from "./api";
import { announce, h, setClass, setText, svg, type Child } from "./dom";
import { percent } from "./format";
import { help } from "./help";
import { auditsText, isGuarded, standingRank, standingText } from "./standing";
import { textColumn, type Column } from "./table";
import type { JobState, JobWorker, WorkerState } from "./types";

export function mark(): SVGSVGElement {
  return svg(
    "svg",
    { viewBox: "0 0 32 32", class: "fish", "aria-hidden": "true" },
    svg("path", { d: "M13 8.5c3-3.4 8-3.7 11-1 .9.8 1 1.2 0 2-3 2.7-8 2.4-11-1Zm-4.5-3 4.6 3-4.6 3 1.6-3Z" }),
    svg("path", {
      d: "M8 17c3.2-3.8 9-4.1 12.4-1.1 1 .9 1.1 1.3 0 2.2C17 21.1 11.2 20.8 8 17Zm-5-3.4L8.2 17 3 20.4 4.8 17Z",
    }),
    svg("path", {
      d: "M17 25c2.6-3 7-3.3 9.7-.9.8.7.9 1.1 0 1.8-2.7 2.4-7.1 2.1-9.7-.9Zm-4-2.7 4.1 2.7-4.1 2.7 1.4-2.7Z",
    }),
  );
}

// A state is told by its word; the colour only helps.
export function stateChip(state: JobState | WorkerState): HTMLElement {
  return h("span", { class: `chip ${state}` }, state);
}

export function setState(cell: Element, state: JobState | WorkerState): void {
  const chip = cell.firstElementChild;
  if (!chip) cell.append(stateChip(state));
  else {
    setClass(chip, `chip ${state}`);
    setText(chip, state);
  }
}

export class Bar {
  private readonly inside = h("span");
  readonly node = h("span", { class: "bar", "aria-hidden": "true" }, this.inside);
  set(done: number): void {
    this.inside.style.transform = `scaleX(${Math.min(Math.max(done, 0), 1)})`;
  }
}

const bars = new WeakMap<Element, { bar: Bar; text: HTMLElement }>();

// A bar with its figure in a cell of a table.
export function fillBar(cell: HTMLTableCellElement, done: number, text: string): void {
  let made = bars.get(cell);
  if (!made) {
    made = { bar: new Bar(), text: h("span", { class: "figure" }) };
    bars.set(cell, made);
    cell.append(h("span", { class: "progress" }, made.bar.node, made.text));
  }
  made.bar.set(done);
  setText(made.text, text);
}

// A column of bars with their figures: what part of the whole each row has.
export function shareColumn<T>(width: string, share: (row: T) => number): Column<T> {
  return {
    title: "Share",
    width,
    phoneWidth: "6.5rem",
    kind: "number",
    fill: (cell, row) => fillBar(cell, share(row), percent(share(row))),
    sort: share,
  };
}

// How far workers are believed, in a table of those of a job; shown where somebody checks.
export const standingColumns: Column<JobWorker>[] = [
  {
    title: "Standing",
    width: "6.5rem",
    fill: textColumn(standingText),
    sort: standingRank,
    shown: isGuarded,
    hide: "phone",
    hint: help.standing,
  },
  {
    title: "Audits",
    width: "6.5rem",
    fill: textColumn(auditsText),
    sort: (worker) => worker.audits_agreed ?? 0,
    shown: isGuarded,
    hide: "tablet",
    hint: "Units that were computed again and found right, and wrong ones",
  },
];

export function card(title: string, ...children: Child[]): HTMLElement {
  return h("section", { class: "card" }, h("h2", null, title), ...children);
}

export function button(
  text: string,
  kind: "main" | "plain" | "danger",
  click: () => void,
): HTMLButtonElement {
  return h("button", { type: "button", class: `button ${kind}`, onclick: click }, text);
}

// Runs `work` with the button switched off, so that nothing is done twice; says what went wrong.
export async function busy(pressed: HTMLButtonElement, work: () => Promise<void>): Promise<void> {
  const hadFocus = document.activeElement === pressed;
  pressed.disabled = true;
  try {
    await work();
  } catch (thrown) {
    notice(textOf(thrown), "bad");
  } finally {
    pressed.disabled = false;
    // A button that is switched off loses the focus, and it may be gone by now.
    if (hadFocus && document.activeElement === document.body)
      (pressed.isConnected ? pressed : document.querySelector<HTMLElement>("main h1"))?.focus();
  }
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without TLS browsers have no clipboard for pages from elsewhere; the old way still works.
    const area = h("textarea", { class: "away" }, text);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

export function copyButton(text: () => string): HTMLButtonElement {
  const element = h("button", { type: "button", class: "button plain copy" }, "Copy");
  element.addEventListener("click", () => {
    void copy(text()).then((done) => {
      element.textContent = done ? "Copied" : "Select it and copy";
      announce(element.textContent);
      setTimeout(() => (element.textContent = "Copy"), 2000);
    });
  });
  return element;
}

// Words that are not broken where they fit into a line: --epochs stays one.
function words(text: string): Child[] {
  return text.split(" ").flatMap((word, i): Child[] => [i > 0 ? " " : null, h("span", null, word)]);
}

// A command or a link in a box, with a button that copies it.
export function copyable(text: string, label: string): HTMLElement {
  return h(
    "div",
    { class: "copyable" },
    h("code", { tabindex: 0, "aria-label": label }, ...words(text)),
    copyButton(() => text),
  );
}

const noticeMs = 5000;

// A sentence at the edge of the page: for some seconds, or, when something went wrong, until it is closed.
export function notice(text: string, kind: "good" | "bad" = "good"): void {
  let region = document.getElementById("notices");
  if (!region) {
    region = h("div", { id: "notices" });
    document.body.append(region);
  }
  for (const older of region.querySelectorAll(".notice"))
    if (older.firstChild?.textContent === text) older.remove();
  const box = h("div", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : "status" }, text);
  box.append(
    h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => box.remove() }, "×"),
  );
  region.append(box);
  if (kind === "good") setTimeout(() => box.remove(), noticeMs);
}

// A question in a box above the page: false when it was called off. `focus`: where one begins to type.
export function askWith(
  title: string,
  yes: string,
  kind: "main" | "danger",
  content: Child[],
  focus?: HTMLInputElement,
): Promise<boolean> {
  return new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { class: "ask", "aria-label": title },
      h(
        "form",
        { method: "dialog" },
        h("h2", null, title),
        ...content,
        h(
          "div",
          { class: "row end" },
          h("button", { class: "button plain", value: "no", formnovalidate: true }, "Cancel"),
          h("button", { class: `button ${kind}`, value: "yes" }, yes),
        ),
      ),
    );
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes");
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
    focus?.select();
  });
}

// Asks before something that cannot be undone.
export function ask(question: string, explanation: string, yes: string): Promise<boolean> {
  return askWith(question, yes, "danger", [h("p", null, explanation)]);
}

// A card that is opened by its title; what is in it is made then.
export function foldedCard(title: string, make: () => HTMLElement): HTMLDetailsElement {
  const node = h("details", { class: "card" }, h("summary", null, h("h2", null, title)));
  node.addEventListener("toggle", () => {
    if (node.open && node.childElementCount === 1) node.append(make());
  });
  return node;
}

export interface SavedFile {
  isThere: boolean;
  text: string; // what it is
  path: string;
  name: string; // that it is saved under
}

export function downloadButtons(files: SavedFile[]): HTMLElement {
  const row = h("div", { class: "row" });
  for (const { isThere, text, path, name } of files) {
    const press: HTMLButtonElement = button(
      `Download ${text}`,
      "plain",
      () => void busy(press, () => download(path, name)),
    );
    press.disabled = !isThere;
    row.append(press);
  }
  return row;
}
