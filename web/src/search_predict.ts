// search_predict.ts: a form that predicts one row: a field for every column that the model learns from, by
// its kind.

import { post, Problem, textOf } from "./api";
import { announce, h, replace, setText } from "./dom";
import { Field } from "./fields";
import { count, counted, figure, percent, tidy } from "./format";
import type { Prediction, Profile, SearchSpec, TableColumn } from "./search_types";

const listMax = 200; // categories of a select; above, they are proposed while one types
const fieldsMax = 200;
const classesMax = 20;

// Columns that the form asks for. Pure.
export function inputColumns(profile: Profile, spec: Partial<SearchSpec>): TableColumn[] {
  return profile.columns.filter((column) => {
    if (column.name === spec.target) return false;
    const said = spec.columns?.[column.name];
    if (said === undefined) return column.used;
    return !["skip", "identifier", "constant"].includes(said);
  });
}

// The cells as they are sent: what is empty is missing, and said to be. Pure.
export function rowOf(
  cells: [name: string, kind: string, text: string][],
): Record<string, string | number | null> {
  const row: Record<string, string | number | null> = {};
  for (const [name, kind, typed] of cells) {
    const text = typed.trim();
    const number = Number(text);
    row[name] = text === "" ? null : kind === "number" && Number.isFinite(number) ? number : text;
  }
  return row;
}

function fieldOf(column: TableColumn, kind: string): Field {
  const name = `predict-${column.name}`;
  const unit = column.unit ? `, in ${column.unit}` : "";
  if (kind === "category" && column.categories && column.categories.length <= listMax) {
    const select = h("select", { name }, h("option", { value: "" }, "missing"));
    for (const category of column.categories) select.append(h("option", { value: category }, category));
    return new Field(column.name, select);
  }
  if (kind === "number") {
    const range =
      typeof column.min === "number" && typeof column.max === "number"
        ? `From ${tidy(column.min)} to ${tidy(column.max)} in the table${unit}.`
        : "";
    return new Field(
      column.name,
      h("input", { type: "text", inputmode: "decimal", name, autocomplete: "off" }),
      range,
    );
  }
  if (kind === "date")
    return new Field(
      column.name,
      h("input", { type: "text", name, autocomplete: "off", placeholder: "2026-01-31" }),
      "A day, or a day and a time.",
    );
  const known = column.categories ?? column.top ?? [];
  if (known.length === 0 || kind === "text")
    return new Field(column.name, h("input", { type: "text", name, autocomplete: "off" }));
  const list = h("datalist", { id: `${name}-known` });
  for (const word of known.slice(0, 1000)) list.append(h("option", { value: word }));
  const input = h("input", { type: "text", name, autocomplete: "off", list: list.id });
  return new Field(column.name, input, `${count(column.distinct)} are known.`, list);
}

// The middle of what the table has, to begin with.
function usualText(column: TableColumn, kind: string): string {
  if (kind === "category") return column.categories?.[0] ?? "";
  const middle = column.quartiles?.[1];
  return kind === "number" && typeof middle === "number" ? String(Number(middle.toPrecision(6))) : "";
}

function show(prediction: Prediction, target: string, unit: string): HTMLElement {
  if (prediction.value !== undefined) {
    const value = `${figure(prediction.value)}${unit ? ` ${unit}` : ""}`;
    return h("p", { class: "predicted" }, `${target}: `, h("strong", null, value));
  }
  const classes = Object.entries(prediction.probabilities ?? {}).sort((a, b) => b[1] - a[1]);
  const list = h("ul", { class: "bars" });
  for (const [name, part] of classes.slice(0, classesMax)) {
    const inside = h("span");
    inside.style.transform = `scaleX(${part})`;
    list.append(
      h(
        "li",
        null,
        h("span", { class: "barname" }, name),
        h("span", { class: "bar", "aria-hidden": "true" }, inside),
        h("span", { class: "figure" }, percent(part)),
      ),
    );
  }
  return h(
    "div",
    { class: "stack" },
    h("p", { class: "predicted" }, `${target}: `, h("strong", null, prediction.class ?? "")),
    list,
  );
}

export function predictForm(path: string, profile: Profile, spec: Partial<SearchSpec>): HTMLElement {
  const target = spec.target ?? "target";
  const unit = profile.columns.find((column) => column.name === target)?.unit ?? "";
  const columns = inputColumns(profile, spec);
  const fields = columns.slice(0, fieldsMax).map((column) => {
    const kind = spec.columns?.[column.name] ?? column.kind;
    const field = fieldOf(column, kind);
    field.input.value = usualText(column, kind);
    return { column, kind, field };
  });
  const answer = h("div", { class: "answer", "aria-live": "polite" });
  const failure = h("p", { class: "error", role: "alert", hidden: true });
  const submit = h("button", { class: "button main", type: "submit" }, "Predict");

  async function send(): Promise<void> {
    failure.hidden = true;
    for (const { field } of fields) field.setError("");
    for (const { kind, field } of fields)
      if (kind === "number" && field.input.value.trim() !== "" && Number.isNaN(Number(field.input.value))) {
        field.setError("must be a number, or empty");
        field.input.focus();
        return;
      }
    submit.disabled = true;
    setText(submit, "Predicts…");
    try {
      const row = rowOf(fields.map(({ column, kind, field }) => [column.name, kind, field.input.value]));
      for (const column of columns.slice(fieldsMax)) row[column.name] = null;
      const { predictions } = await post<{ predictions: Prediction[] }>(`${path}/predict`, { rows: [row] });
      const [first] = predictions;
      if (!first) throw new Problem(0, "", "the server predicted nothing");
      replace(answer, show(first, target, unit));
      announce(first.class ?? figure(first.value));
    } catch (thrown) {
      failure.textContent = textOf(thrown);
      failure.hidden = false;
    } finally {
      submit.disabled = false;
      setText(submit, "Predict");
      if (document.activeElement === document.body) submit.focus({ preventScroll: true });
    }
  }

  const form = h(
    "form",
    { class: "stack", novalidate: true },
    h("p", { class: "muted small" }, "What is left empty counts as missing."),
    h("div", { class: "columns three" }, ...fields.map(({ field }) => field.node)),
    columns.length > fieldsMax &&
      h("p", { class: "hint" }, `Counted as missing: ${counted(columns.length - fieldsMax, "more column")}.`),
    h("div", { class: "row" }, submit),
    failure,
    answer,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void send();
  });
  return form;
}
