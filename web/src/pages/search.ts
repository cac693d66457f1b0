// search.ts: the page that starts a search: a table, what its columns are, what to predict, how long to
// search.

import { get } from "../api";
import { h } from "../dom";
import type { Frame, Page } from "../page";
import { card } from "../parts";
import type { SearchSpec } from "../search_types";
import { ColumnsPart } from "./search_columns";
import { SettingsPart, TargetPart } from "./search_settings";
import { TablePart } from "./search_table";
import { refusal, StartForm, type StartOptions } from "./start_form";

const starting: StartOptions = {
  title: "Search",
  heading: "Search for a network",
  doing: "searching",
  noun: "search",
};

export function searchPage(frame: Frame, from: number | null): Page {
  const refused = refusal(frame, starting);
  if (refused) return refused;
  const table = new TablePart();
  const columns = new ColumnsPart();
  const target = new TargetPart();
  const settings = new SettingsPart(frame.server.activations);
  let earlier: Partial<SearchSpec> | null = null;

  const form = new StartForm(frame, starting, {
    clearErrors() {
      table.setError("");
      columns.clearErrors();
      target.clearErrors();
      settings.clearErrors();
    },
    async spec() {
      await columns.settled();
      const { columns: kinds, dialect } = columns.corrections;
      const chosen = target.spec();
      const rest = settings.spec();
      if (!settings.space.check()) return null;
      const spec: SearchSpec = {
        kind: "search",
        data: table.name,
        target: "",
        ...chosen,
        ...rest,
        columns: kinds,
      };
      if (dialect) spec.dialect = dialect;
      return spec;
    },
    setError({ field, message, line }) {
      if (field === "space") settings.space.setError(message, line ?? 0);
      else if (field === "data") table.setError(message);
      else if (field === "columns" || field === "dialect") columns.setError(message);
      else return target.setError(field ?? "", message) || settings.setError(field ?? "", message);
      return true;
    },
    async fill() {
      if (from !== null) {
        earlier = (await get<{ spec: Partial<SearchSpec> }>(`/jobs/${from}`)).spec;
        target.copy(earlier);
        settings.copy(earlier);
      }
      await table.start(earlier?.data ?? null);
    },
  });

  const columnsCard = card("2. Columns", columns.node);
  const rest = h(
    "div",
    { class: "stack", hidden: true },
    card("3. What to predict", target.node),
    card("4. How long", settings.node),
    card("5. What is tried", settings.space.node),
    form.row,
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

  return form.page(
    "page narrow",
    h(
      "p",
      { class: "lead" },
      "Give a table, say what to predict: networks of many kinds are tried, and the best become one model.",
    ),
    card("1. Table", table.node),
    columnsCard,
    rest,
  );
}
