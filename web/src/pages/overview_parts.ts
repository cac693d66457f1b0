// overview_parts.ts: what the lists of the overview share.

import { h } from "../dom";

export const rowHeight = 44;

export function select(
  label: string,
  options: [value: string, text: string][],
  changed: () => void,
): HTMLSelectElement {
  return h(
    "select",
    { "aria-label": label, onchange: changed },
    ...options.map(([value, text]) => h("option", { value }, text)),
  );
}

export interface Filter {
  node: HTMLElement;
  values(): { text: string; state: string };
  matches(state: string, ...texts: (string | null)[]): boolean;
}

export function filterFor(what: string, states: string[], changed: () => void): Filter {
  const text = h("input", {
    type: "search",
    placeholder: `Find ${what}`,
    "aria-label": `Find ${what} by text`,
    oninput: changed,
  });
  const all: [string, string][] = [
    ["", "All states"],
    ...states.map((name): [string, string] => [name, name]),
  ];
  const state = select(`State of ${what}`, all, changed);
  const values = (): { text: string; state: string } => ({ text: text.value.trim(), state: state.value });
  return {
    node: h("div", { class: "filter" }, text, state),
    values,
    matches(itsState, ...texts) {
      if (state.value && state.value !== itsState) return false;
      const wanted = text.value.trim().toLowerCase();
      return wanted === "" || texts.some((t) => t !== null && t.toLowerCase().includes(wanted));
    },
  };
}
