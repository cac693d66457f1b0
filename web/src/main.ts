// main.ts: the frame: it signs in, shows the page that the address names, and the state of the connection.

import "../style/app.css";
import { get, Problem, textOf, whenRefused } from "./api";
import { repaintCharts } from "./chart";
import { announce, h, replace, setText } from "./dom";
import { duration } from "./format";
import type { LiveState } from "./live";
import type { Frame, Page } from "./page";
import { accessPage } from "./pages/access";
import { agentPage } from "./pages/agent";
import { anyJobPage } from "./pages/any_job";
import { comparePage } from "./pages/compare";
import { hostPage } from "./pages/host";
import { overviewPage } from "./pages/overview";
import { searchPage } from "./pages/search";
import { signInScreen } from "./pages/signin";
import { workPage } from "./pages/work";
import { button, mark } from "./parts";
import { routeOf, type Route } from "./routes";
import { invitation, isStaying, signOut, startSession, stay, takeFromAddress } from "./session";
import { nextTheme, onTheme, startTheme, theme } from "./theme";
import { may, type ServerInfo } from "./types";

const app = document.getElementById("app") as HTMLElement;
let page: Page | null = null;
let frame: Frame | null = null;
let isRefused = false;

// ---- the frame's own parts ----

const nav = h("nav", { class: "nav", "aria-label": "Pages" });
const connection = h("div", { class: "connection", role: "status" });
const lost = h("div", { class: "broken", hidden: true });
const main = h("main", { id: "main" });

function themeButton(): HTMLButtonElement {
  const names = { system: "Colours: as the system", light: "Colours: light", dark: "Colours: dark" };
  const signs = { system: "◐", light: "☀", dark: "☾" };
  const element = h("button", { type: "button", class: "icon" });
  const show = (): void => {
    setText(element, signs[theme()]);
    element.setAttribute("aria-label", names[theme()]);
    element.title = names[theme()];
  };
  element.addEventListener("click", () => {
    nextTheme();
    show();
    announce(names[theme()]);
  });
  show();
  return element;
}

function sessionMenu(server: ServerInfo): HTMLElement {
  const staying = h("input", { type: "checkbox", id: "staying" });
  staying.checked = isStaying();
  staying.addEventListener("change", () => stay(staying.checked));
  const leave = button("Sign out", "plain", () => {
    signOut();
    void start();
  });
  return h(
    "details",
    { class: "menu" },
    h("summary", null, server.role),
    h(
      "div",
      { class: "menubox" },
      h("p", { class: "muted small" }, `shoal ${server.version}. You are here as ${server.role}.`),
      invitation() &&
        h(
          "div",
          { class: "check" },
          staying,
          h("label", { for: "staying" }, "Stay signed in on this device"),
        ),
      invitation() && leave,
    ),
  );
}

function showNav(route: Route): void {
  const role = frame?.server.role ?? "viewer";
  const items: [string, string, string, boolean][] = [
    ["overview", "/", "Overview", true],
    ["host", "/host", "Host", may(role, "host")],
    ["search", "/search", "Search", may(role, "host")],
    ["agent", "/agent", "Agent", may(role, "host")],
    ["work", "/work", "Work", true],
    ["access", "/access", "Access", may(role, "admin")],
  ];
  replace(
    nav,
    ...items
      .filter(([, , , shown]) => shown)
      .map(([name, path, text]) =>
        h("a", { href: path, "aria-current": route.page === name ? "page" : false }, text),
      ),
  );
}

function buildFrame(server: ServerInfo): void {
  replace(
    app,
    h(
      "header",
      { class: "top" },
      h("a", { class: "brand", href: "/" }, mark(), "Shoal"),
      nav,
      h("div", { class: "row tight" }, connection, themeButton(), sessionMenu(server)),
    ),
    lost,
    main,
  );
}

// ---- the stream of the page ----

let countdown = 0;

function showLive(state: LiveState, retryMs: number, why: string, now: () => void): void {
  clearInterval(countdown);
  const words: Record<LiveState, string> = {
    connecting: "Connecting",
    connected: "Live",
    lost: "Offline",
    ended: "Ended",
  };
  connection.className = `connection ${state}`;
  setText(connection, words[state]);
  lost.hidden = state !== "lost";
  if (state !== "lost") return;
  const at = Date.now() + retryMs;
  const text = h("span", { "aria-hidden": "true" });
  const tick = (): void => {
    const left = Math.ceil((at - Date.now()) / 1000);
    setText(
      text,
      left > 0
        ? `Connection lost, trying again in ${duration(left).replace(/\.0/, "")}.`
        : "Connection lost, trying again…",
    );
  };
  tick();
  countdown = window.setInterval(tick, 500);
  lost.title = why;
  replace(lost, text, h("button", { type: "button", class: "link", onclick: now }, "Try now"));
  announce("Connection lost, trying again");
}

// ---- pages ----

function makePage(route: Route, to: Frame): Page {
  switch (route.page) {
    case "overview":
      return overviewPage(to);
    case "host":
      return hostPage(to, route.from);
    case "search":
      return searchPage(to, route.from);
    case "agent":
      return agentPage(to, route.from);
    case "job":
      return anyJobPage(to, route.id);
    case "compare":
      return comparePage(to, route.jobs);
    case "work":
      return workPage(to);
    case "access":
      return accessPage(to);
    case "missing":
      return {
        title: "Not here",
        node: h(
          "div",
          { class: "page" },
          h("h1", { tabindex: -1 }, "There is no such page"),
          h("a", { href: "/" }, "To the overview"),
        ),
        close: () => undefined,
      };
  }
}

function setTitle(text: string): void {
  document.title = `${text} · Shoal`;
}

function show(moved: boolean): void {
  if (!frame) return;
  page?.close();
  clearInterval(countdown);
  lost.hidden = true;
  const route = routeOf(location.pathname, location.search);
  showNav(route);
  page = makePage(route, frame);
  setTitle(page.title);
  replace(main, page.node);
  if (location.pathname === "/workers") document.getElementById("workers")?.scrollIntoView();
  if (!moved) return;
  if (location.pathname !== "/workers") scrollTo(0, 0);
  main.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
  announce(page.title);
}

function go(path: string): void {
  history.pushState(null, "", path);
  show(true);
}

// Links to our own pages do not load the page anew.
document.addEventListener("click", (event) => {
  const link = (event.target as Element).closest?.("a");
  if (!link || event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || link.target || link.download)
    return;
  if (link.origin !== location.origin || link.getAttribute("href")?.startsWith("#")) return;
  event.preventDefault();
  go(link.pathname + link.search);
});
// The menu closes when something else is clicked.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll<HTMLDetailsElement>("details.menu[open]")) {
    if (!menu.contains(event.target as Node)) menu.open = false;
  }
});
window.addEventListener("popstate", () => show(true));
window.addEventListener("hashchange", () => {
  if (takeFromAddress()) void start();
});

// ---- start ----

function askForLink(): void {
  page?.close();
  page = null;
  frame = null;
  setTitle("Come in");
  replace(
    app,
    signInScreen(invitation() !== null, () => void start()),
  );
}

whenRefused(() => {
  if (isRefused) return;
  isRefused = true;
  askForLink();
});

function showFailure(thrown: unknown): void {
  const again = button("Try again", "main", () => void start());
  const text = `${textOf(thrown)}.`;
  replace(
    app,
    h(
      "main",
      { id: "main", class: "centre" },
      h(
        "div",
        { class: "card signin" },
        mark(),
        h("h1", null, "No answer"),
        h("p", { role: "alert" }, text),
        again,
      ),
    ),
  );
  setTimeout(() => {
    if (app.contains(again)) void start();
  }, 5000);
}

async function start(): Promise<void> {
  isRefused = false;
  page?.close();
  page = null;
  try {
    const server = await get<ServerInfo>("/server");
    frame = {
      server,
      go,
      live: showLive,
      updated(newer) {
        // Who one is does not come with the live updates.
        this.server = { ...this.server, ...newer };
      },
      title: setTitle,
    };
    buildFrame(server);
    show(false);
  } catch (thrown) {
    if (!(thrown instanceof Problem && thrown.status === 401)) showFailure(thrown);
  }
}

startTheme();
onTheme(repaintCharts);
startSession();
void start();
