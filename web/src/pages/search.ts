// search.ts: the page that starts a search: a table, what its columns are, what to predict, how long to
// search.

import { get, Problem, post, textOf } from "../api";
import { h, setText } from "../dom";
import { Fleet } from "../fleet";
import { count } from "../format";
import type { Frame, Page } from "../page";
import { card } from "../parts";
import type { SearchSpec } from "../search_types";
import { may, type Job } from "../types";
import { ColumnsPart } from "./search_columns";
import { SettingsPart, TargetPart } from "./search_settings";
import { TablePart } from "./search_table";

function refusal(): Page {
  return {
    title: "Search",
    node: h(
      "div",
      { class: "page narrow" },
      h("h1", { tabindex: -1 }, "Search for a network"),
      h(
        "p",
        null,
        "Your invitation does not include searching. Ask whoever gave it to you for one for hosts.",
      ),
    ),
    close: () => undefined,
  };
}

export function searchPage(frame: Frame, from: number | null): Page {
  if (!may(frame.server.role, "host")) return refusal();
  const table = new TablePart();
  const columns = new ColumnsPart();
  const target = new TargetPart();
  const settings = new SettingsPart();
  const start = h("button", { class: "button main large", type: "submit" }, "Start");
  const failure = h("p", { class: "error", role: "alert", hidden: true });
  const idle = h("p", { class: "muted small", role: "status" });
  let earlier: Partial<SearchSpec> | null = null;

  const fleet = new Fleet(frame, () => {
    const n = frame.server.idle;
    setText(
      idle,
      n === 0
        ? "No worker is idle now; the search waits until one comes."
        : `${count(n)} ${n === 1 ? "worker is" : "workers are"} idle now.`,
    );
  });

  const columnsCard = card("2. Columns", columns.node);
  const rest = h(
    "div",
    { class: "stack", hidden: true },
    card("3. What to predict", target.node),
    card("4. How long", settings.node),
    card("5. What is tried", settings.space.node),
    h("div", { class: "startrow" }, start, h("div", null, failure, idle)),
  );
  columnsCard.hidden = true;

  table.chosen = (set) => {
    columnsCard.hidden = set === null;
    if (!set) {
      columns.clear();
      return;
    }
    // What an earlier search said goes for its own table.
    const said = earlier?.data === set.name ? earlier : null;
    columns.show(set.name, said?.columns ?? {}, said?.dialect ?? "");
  };
  columns.changed = (profile) => {
    rest.hidden = profile === null;
    if (!profile) return;
    target.set(profile);
    settings.set(profile);
  };

  function showProblem(thrown: unknown): void {
    const problem = thrown instanceof Problem ? thrown : null;
    const text = textOf(thrown);
    const field = problem?.field ?? "";
    if (field === "space-controls") return;
    if (field === "space") {
      settings.space.setError(text, problem?.line ?? 0);
      return;
    }
    if (field === "data") table.setError(text);
    else if (field === "columns" || field === "dialect") columns.setError(text);
    else if (target.setError(field, text) || settings.setError(field, text)) {
      // It is beside its field now.
    } else {
      failure.textContent = text;
      failure.hidden = false;
      return;
    }
    const wrong = form.querySelector<HTMLElement>("[aria-invalid=true]") ?? columnsCard;
    wrong.scrollIntoView({ block: "center" });
    wrong.focus();
  }

  async function submit(): Promise<void> {
    failure.hidden = true;
    table.setError("");
    target.clearErrors();
    settings.clearErrors();
    start.disabled = true;
    try {
      const { columns: kinds, dialect } = columns.corrections;
      const spec: SearchSpec = {
        kind: "search",
        data: table.name,
        target: "",
        ...target.spec(),
        ...settings.spec(),
        columns: kinds,
      };
      if (dialect) spec.dialect = dialect;
      const job = await post<Job>("/jobs", spec);
      frame.go(`/jobs/${job.id}`);
    } catch (thrown) {
      showProblem(thrown);
    } finally {
      start.disabled = false;
    }
  }

  async function fill(): Promise<void> {
    if (from !== null) {
      earlier = (await get<{ spec: Partial<SearchSpec> }>(`/jobs/${from}`)).spec;
      target.copy(earlier);
      settings.copy(earlier);
    }
    await table.start(earlier?.data ?? null);
  }

  const form = h(
    "form",
    { class: "page narrow", novalidate: true },
    h("h1", { tabindex: -1 }, "Search for a network"),
    h(
      "p",
      { class: "lead" },
      "Give a table, say what to predict: networks of many kinds are tried, and the best become one model.",
    ),
    card("1. Table", table.node),
    columnsCard,
    rest,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void submit();
  });
  // Enter in a box should not start a search by accident.
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target instanceof HTMLInputElement) event.preventDefault();
  });
  fill().catch(showProblem);
  return { title: "Search", node: form, close: () => fleet.close() };
}
