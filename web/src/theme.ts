// theme.ts: light or dark: what the system wants, or what the switch was set to; and on paper.

import { drawAtOnce } from "./dom";

export type Theme = "system" | "light" | "dark";

const key = "shoal.theme";
const order: Theme[] = ["system", "light", "dark"];
const listeners = new Set<() => void>();
let isOnPaper = false;

export function theme(): Theme {
  const kept = localStorage.getItem(key);
  return kept === "light" || kept === "dark" ? kept : "system";
}

function apply(): void {
  if (isOnPaper) return; // a browser may tell of the printer's light and dark, too
  const chosen = theme();
  if (chosen === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset["theme"] = chosen;
  repaint();
}

function repaint(): void {
  for (const listener of listeners) listener();
}

// On paper all is light, and as wide as the style sheet says of class "paper". What is drawn on canvases is
// drawn for that before it is printed or saved as PDF, and for the screen afterwards.
function startPrinting(): void {
  const { classList, dataset } = document.documentElement;
  window.addEventListener("beforeprint", () => {
    isOnPaper = true;
    classList.add("paper");
    dataset["theme"] = "light";
    drawAtOnce(repaint);
  });
  window.addEventListener("afterprint", () => {
    isOnPaper = false;
    classList.remove("paper");
    apply();
  });
}

export function startTheme(): void {
  apply();
  startPrinting();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
}

export function nextTheme(): Theme {
  const next = order[(order.indexOf(theme()) + 1) % order.length] as Theme;
  if (next === "system") localStorage.removeItem(key);
  else localStorage.setItem(key, next);
  apply();
  return next;
}

// For what is drawn on a canvas. Returns how to end it.
export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
