// theme.ts: light or dark: what the system wants, or what the switch was set to.

export type Theme = "system" | "light" | "dark";

const key = "shoal.theme";
const order: Theme[] = ["system", "light", "dark"];
const listeners = new Set<() => void>();

export function theme(): Theme {
  const kept = localStorage.getItem(key);
  return kept === "light" || kept === "dark" ? kept : "system";
}

function apply(): void {
  const chosen = theme();
  if (chosen === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset["theme"] = chosen;
  for (const listener of listeners) listener();
}

export function startTheme(): void {
  apply();
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
