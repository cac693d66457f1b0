// search_columns.ts: the part of the Search page that shows a table's columns and first rows, and lets a
// person correct what was guessed of them. What is corrected is asked of the server, which reads the file
// again.

import { post, Problem, textOf } from "../api";
import { announce, h, replace, setText } from "../dom";
import { selectField, type Field } from "../fields";
import { count, counted, percent } from "../format";
import { Latest } from "../latest";
import { dialectChoices, dialectText, dialectWord, parseDialect } from "../search_spec";
import { smallPicture } from "../search_small";
import { columnKinds, type Preview, type Profile, type TableColumn } from "../search_types";
import { Table, textColumn } from "../table";

const rowHeight = 64;
const previewColumnsMax = 60;
const warningsMax = 20; // that a phone shows
const askAfterMs = 150;

// A table's first rows, as they are in the file.
function previewTable(profile: Profile, rows: (string | null)[][]): HTMLElement {
  const columns = profile.columns.slice(0, previewColumnsMax);
  const more = profile.columns.length - columns.length;
  return h(
    "div",
    { class: "scroller preview", tabindex: 0, role: "region", "aria-label": "The first rows" },
    h(
      "table",
      null,
      h("thead", null, h("tr", null, ...columns.map((column) => h("th", { scope: "col" }, column.name)))),
      h(
        "tbody",
        null,
        ...rows.map((row) =>
          h(
            "tr",
            null,
            ...columns.map((_, i) => {
              const cell = row[i];
              return cell === null || cell === undefined || cell === ""
                ? h("td", { class: "muted" }, "–")
                : h("td", null, cell);
            }),
          ),
        ),
      ),
    ),
    more > 0 && h("p", { class: "muted small" }, `and ${counted(more, "more column")}`),
  );
}

export class ColumnsPart {
  readonly node: HTMLElement;
  profile: Profile | null = null;
  changed: (profile: Profile | null) => void = () => undefined;
  private name = "";
  private said: Record<string, string> = {}; // kinds of columns
  private dialect: Record<string, string> = {};
  private wrong = ""; // why the table cannot be read as was said
  private readonly table: Table<TableColumn>;
  private readonly status = h("p", { class: "muted small", role: "status" });
  private readonly failure = h("p", { class: "error", role: "alert", tabindex: -1, hidden: true });
  private readonly warnings = h("ul", { class: "warnings" });
  private readonly columnWarnings = h("ul", { class: "warnings only-phone" }); // cut in the table there
  private readonly preview = h("div");
  private readonly parts: Record<string, Field> = {};
  private readonly back = h(
    "button",
    { type: "button", class: "link small", hidden: true, onclick: () => this.reset() },
    "Back to what was guessed",
  );
  private readonly questions = new Latest(askAfterMs, (signal) => this.fetch(signal));

  constructor() {
    this.table = this.makeTable();
    const titles: Record<string, string> = {
      delimiter: "Between cells",
      decimal: "Decimal sign",
      encoding: "Encoding",
      header: "The first line",
    };
    for (const [part, choices] of Object.entries(dialectChoices)) {
      const field = selectField(titles[part] ?? part, `dialect-${part}`, [["", "as found"], ...choices]);
      field.input.addEventListener("change", () => this.sayDialect(part, field.input.value));
      this.parts[part] = field;
    }
    const dialect = h(
      "details",
      null,
      h("summary", null, "How the file is written"),
      h("div", { class: "columns three" }, ...Object.values(this.parts).map((field) => field.node)),
    );
    this.node = h(
      "div",
      { class: "stack" },
      this.failure,
      this.status,
      this.warnings,
      this.columnWarnings,
      dialect,
      h("details", { open: true }, h("summary", null, "The first rows"), this.preview),
      this.table.node,
      h("div", { class: "row" }, this.back),
    );
  }

  // What goes into a search: only what differs from the guess.
  get corrections(): { columns: Record<string, string>; dialect: string } {
    return { columns: { ...this.said }, dialect: dialectText(this.dialect) };
  }

  // With what an earlier search said of them.
  show(name: string, columns: Record<string, string> = {}, dialect = ""): void {
    this.name = name;
    this.said = { ...columns };
    this.dialect = parseDialect(dialect);
    this.profile = null;
    this.questions.now();
  }

  // Waits for the table to be read as was said last. Throws why that is not possible.
  async settled(): Promise<void> {
    if (this.wrong) this.questions.now(); // the server may not have been there
    await this.questions.settled();
    if (this.wrong) throw new Problem(0, "bad_request", this.wrong, "columns");
  }

  clear(): void {
    this.questions.drop();
    this.name = "";
    this.profile = null;
    this.changed(null);
  }

  setError(text: string): void {
    setText(this.failure, text);
    this.failure.hidden = text === "";
  }

  // Only what is wrong with the table stays.
  clearErrors(): void {
    this.setError(this.wrong);
  }

  private reset(): void {
    this.said = {};
    this.dialect = {};
    this.questions.soon();
  }

  private sayDialect(part: string, word: string): void {
    if (word) this.dialect[part] = word;
    else delete this.dialect[part];
    // Columns may have other names now.
    if (part === "header" || part === "delimiter") this.said = {};
    this.questions.soon();
  }

  private sayKind(column: TableColumn, kind: string): void {
    if (kind === column.guessed) delete this.said[column.name];
    else this.said[column.name] = kind;
    this.questions.soon();
  }

  private async fetch(signal: AbortSignal): Promise<void> {
    this.wrong = "";
    this.setError("");
    setText(this.status, "Reads the table…");
    this.node.setAttribute("aria-busy", "true");
    try {
      const path = `/datasets/${encodeURIComponent(this.name)}/profile`;
      const answer = await post<Preview>(path, this.corrections, signal);
      if (!signal.aborted) this.take(answer);
    } catch (thrown) {
      if (signal.aborted) return;
      setText(this.status, "");
      // The line of the file is where the trouble is.
      const line = thrown instanceof Problem && thrown.line !== null ? `Line ${thrown.line}: ` : "";
      this.wrong = line + textOf(thrown);
      this.setError(this.wrong);
      this.showFields();
      this.table.refresh();
    } finally {
      if (!signal.aborted) this.node.removeAttribute("aria-busy");
    }
  }

  private take(answer: Preview): void {
    const { profile } = answer;
    this.profile = profile;
    const text = `${counted(profile.rows, "row")}, ${counted(profile.columns.length, "column")}.`;
    setText(this.status, text);
    announce(text);
    const ragged = `Left out for too few or too many cells: ${counted(profile.ragged, "row")}`;
    replace(
      this.warnings,
      profile.ragged > 0 && h("li", null, `${ragged}, the first in line ${profile.ragged_line}.`),
    );
    const warned = profile.columns.filter((column) => column.warning !== "").slice(0, warningsMax);
    replace(
      this.columnWarnings,
      ...warned.map((column) => h("li", null, `${column.name}: ${column.warning}.`)),
    );
    replace(this.preview, previewTable(profile, answer.preview));
    this.showFields();
    this.table.set(profile.columns);
    this.changed(profile);
  }

  private showFields(): void {
    for (const [part, field] of Object.entries(this.parts)) {
      field.input.value = this.dialect[part] ?? "";
      const found = this.profile && dialectWord(this.profile.dialect, part);
      const text = dialectChoices[part]?.find(([word]) => word === found)?.[1] ?? found;
      field.setHint(text ? `Read as: ${text}` : "");
    }
    this.back.hidden = Object.keys(this.said).length === 0 && Object.keys(this.dialect).length === 0;
  }

  private fillName(cell: HTMLTableCellElement, column: TableColumn): void {
    if (!cell.firstElementChild)
      cell.append(h("div", { class: "columnname" }, h("strong"), h("span", { class: "warning" })));
    const [name, warning] = cell.querySelectorAll<HTMLElement>("strong, .warning");
    setText(name as Element, column.name);
    setText(warning as Element, column.warning);
    cell.title = column.warning ? `${column.name}: ${column.warning}` : column.name;
  }

  private fillKind(cell: HTMLTableCellElement, column: TableColumn): void {
    let select = cell.firstElementChild as HTMLSelectElement | null;
    if (!select) {
      const made = h("select", { "aria-label": `Kind of ${column.name}`, name: `kind-${column.name}` });
      for (const kind of [...columnKinds, "skip"]) made.append(h("option", { value: kind }, kind));
      cell.append(made);
      select = made;
    }
    // The row may be another column by now.
    select.onchange = () => this.sayKind(column, (select as HTMLSelectElement).value);
    select.value = this.said[column.name] ?? column.kind;
    select.classList.toggle("said", column.name in this.said);
    select.title = column.name in this.said ? `guessed: ${column.guessed}` : "";
  }

  private makeTable(): Table<TableColumn> {
    const rows = (): number => this.profile?.rows ?? 0;
    return new Table<TableColumn>({
      label: "Columns",
      empty: "Columns appear when the table has been read.",
      rowHeight,
      key: (column) => column.name,
      columns: [
        {
          title: "Column",
          wraps: true,
          width: "auto",
          fill: (cell, column) => this.fillName(cell, column),
          sort: (column) => column.name,
        },
        {
          title: "Kind",
          width: "9.5rem",
          phoneWidth: "8rem",
          hint: "Identifiers, constants and what is skipped are not learned from",
          fill: (cell, column) => this.fillKind(cell, column),
          sort: (column) => column.kind,
        },
        {
          title: "Missing",
          width: "5.4rem",
          kind: "number",
          fill: textColumn((column) =>
            column.missing === 0 ? "none" : percent(column.missing / Math.max(rows(), 1)),
          ),
          sort: (column) => column.missing,
          hide: "phone",
        },
        {
          title: "Different",
          width: "6rem",
          kind: "number",
          hint: "How many different values there are",
          fill: textColumn((column) => count(column.distinct)),
          sort: (column) => column.distinct,
          hide: "tablet",
        },
        {
          title: "Values",
          width: "30%",
          phoneWidth: "5.4rem",
          fill: (cell, column) => replace(cell, smallPicture(column, rows())),
        },
      ],
    });
  }
}
