// help.ts: words that not everybody knows, explained where they stand: a small button that opens a sentence. It
// works by pointer, by touch and by keyboard; Escape, or a press anywhere else, closes it.

import { h, newId } from "./dom";

export const help = {
  validation:
    "The score on the validation rows, by which this trial was chosen among all. The best of many is lucky, " +
    "too: expect a little less on new rows.",
  units:
    "A unit of work is a part of one round's batch that is handed to one worker. When that worker does not " +
    "answer in time, another one gets the unit: the result stays the same to the last bit.",
  again:
    "Units of work that were handed to a second worker, because the first did not answer in time or left.",
  audited:
    "Units of work that were computed a second time, by somebody who is trusted, to compare the results.",
  rejected:
    "Results of workers that were not used: they were wrong when computed again, or too unlike those of the " +
    "others.",
  lag:
    "How many times the policy has learned since an actor got the version that it plays with, on average. " +
    "0 is up to date; a few are normal where many play at once.",
  rollouts: "Stretches of play that have come in and that the policy has not learned from yet.",
  heard: "How long ago the worker was last heard.",
  standing:
    "Unproven: every unit is computed a second time. Proven: only some are. Banned: one was wrong, and the " +
    "worker gets no more work.",
};

let open: { close(): void } | null = null;

function place(button: HTMLElement, text: HTMLElement): void {
  const { left, bottom } = button.getBoundingClientRect();
  const width = document.documentElement.clientWidth;
  text.style.left = `${Math.max(8, Math.min(left - 12, width - text.offsetWidth - 8)) + scrollX}px`;
  text.style.top = `${bottom + 6 + scrollY}px`;
}

// The button that opens what the words mean.
export function whatIs(words: string, text: string): HTMLElement {
  const id = newId("help");
  const button = h(
    "button",
    {
      type: "button",
      class: "whatis",
      "aria-label": `What is “${words}”?`,
      "aria-expanded": "false",
      "aria-controls": id,
    },
    "?",
  );
  button.addEventListener("click", () => {
    const isOwn = button.getAttribute("aria-expanded") === "true";
    open?.close();
    if (!isOwn) show(button, id, text);
  });
  return button;
}

// The words, with that button behind them.
export function explained(words: string, text: string): HTMLElement {
  return h("span", { class: "explained" }, words, "\u00a0", whatIs(words, text));
}

function show(button: HTMLElement, id: string, text: string): void {
  const box = h("div", { class: "helptext", id, role: "status" }, text);
  const end = new AbortController();
  const close = (): void => {
    end.abort();
    box.remove();
    button.setAttribute("aria-expanded", "false");
    open = null;
  };
  open = { close };
  // Beside the button for who reads by ear; where it is drawn does not depend on that.
  document.body.append(box);
  button.setAttribute("aria-expanded", "true");
  place(button, box);
  const { signal } = end;
  const press = (event: Event): void => {
    const at = event.target as Node;
    if (!box.contains(at) && !button.contains(at)) close();
  };
  document.addEventListener("click", press, { signal });
  document.addEventListener("keydown", (event) => event.key === "Escape" && close(), { signal });
  window.addEventListener("resize", close, { signal });
  window.addEventListener("popstate", close, { signal });
}
