// table.ts: a table of which only the rows in sight exist, so that thousands cost no more than twenty.
//
// All rows have the same height, but those with a long name: that is never cut, and makes its row higher.
// Rows are made once per key and filled again when something changed;
// sorting is by a click on a column's head.

import { eachFrame, h, setClass, setText } from "./dom";
import { count } from "./format";
import { whatIs } from "./help";
import { windowOf, windowOfRows } from "./window";

export interface Column<T> {
  title: string;
  isTitleAway?: boolean; // only for who cannot see the table
  width: string; // of the style sheet: "30%", "6rem", "auto"
  phoneWidth?: string;
  kind?: "number" | "text";
  hide?: "small" | "phone" | "tablet"; // up to this width of the screen
  hint?: string;
  wraps?: boolean; // names, which may be long
  shown?(rows: T[]): boolean; // without it: always
  fill(cell: HTMLTableCellElement, row: T): void;
  sort?(row: T): number | string;
}

export interface TableOptions<T> {
  label: string;
  empty: string;
  rowHeight: number; // at least
  columns: Column<T>[];
  key(row: T): string | number;
  rowClass?(row: T): string;
  // The control that every row has one of. Tab leads to one of them and on, arrow keys from row to row: a
  // table of thousands is no wall for who has no pointer.
  control?: string; // a selector
}

const spareRows = 6;

export function textColumn<T>(text: (row: T) => string): (cell: HTMLTableCellElement, row: T) => void {
  return (cell, row) => setText(cell, text(row));
}

export class Table<T> {
  readonly node: HTMLElement;
  private readonly scroller: HTMLElement;
  private readonly body: HTMLTableSectionElement;
  private readonly table: HTMLTableElement;
  private readonly above = spacer();
  private readonly below = spacer();
  private readonly note: HTMLElement;
  private readonly heads: HTMLTableCellElement[] = [];
  private readonly cols: HTMLElement[] = [];
  private readonly made = new Map<string | number, HTMLTableRowElement>();
  private rows: T[] = [];
  private sorted: T[] = [];
  private sortBy = -1;
  private descending = false;
  private readonly heights = new Map<string | number, number>(); // of rows that were drawn, where names wrap
  private readonly wraps: boolean;
  private reached: string | number | null = null; // the row whose control Tab leads to
  private readonly draw = eachFrame(() => this.drawNow());
  private readonly sizes = new ResizeObserver(() => {
    this.heights.clear();
    this.draw();
  });

  constructor(private readonly options: TableOptions<T>) {
    this.wraps = options.columns.some((column) => column.wraps);
    this.body = h("tbody", null, this.above, this.below);
    this.table = h(
      "table",
      { class: "grid" },
      h("caption", { class: "away" }, options.label),
      this.columnGroup(),
      h("thead", null, this.headRow()),
      this.body,
    );
    this.note = h("p", { class: "empty", hidden: true }, options.empty);
    this.scroller = h(
      "div",
      { class: "scroller", tabindex: 0, role: "region", "aria-label": options.label },
      this.table,
    );
    this.showColumns();
    this.scroller.addEventListener("scroll", this.draw, { passive: true });
    this.sizes.observe(this.scroller);
    if (options.control) {
      this.body.addEventListener("keydown", (event) => this.press(event));
      this.body.addEventListener("focusin", (event) => this.reach(this.indexOf(event.target as Element)));
    }
    this.node = h("div", { class: "tablebox" }, this.scroller, this.note);
  }

  // `empty`: what to say where there are none, when that changes.
  set(rows: T[], empty?: string): void {
    this.rows = rows;
    if (empty !== undefined) setText(this.note, empty);
    this.showColumns();
    this.sort();
    this.draw();
  }

  get isEmpty(): boolean {
    return this.rows.length === 0;
  }

  // Fills the rows again, when what they show depends on more than the rows.
  refresh(): void {
    this.set(this.rows);
  }

  private showColumns(): void {
    this.options.columns.forEach((column, i) => {
      const hidden = column.shown !== undefined && !column.shown(this.rows);
      const head = this.heads[i] as HTMLTableCellElement;
      if (head.hidden === hidden) return;
      head.hidden = hidden;
      (this.cols[i] as HTMLElement).hidden = hidden;
      for (const row of this.made.values()) (row.cells[i] as HTMLTableCellElement).hidden = hidden;
    });
  }

  private hideClass(column: Column<T>): string {
    const kind = column.kind === "number" ? "number" : column.wraps ? "wraps" : "";
    return column.hide ? `${kind} hide-${column.hide}`.trim() : kind;
  }

  private columnGroup(): HTMLElement {
    const group = h("colgroup");
    for (const column of this.options.columns) {
      const col = h("col", { class: this.hideClass(column) });
      const room = (width: string): string =>
        column.hint && width !== "auto" ? `calc(${width} + 1rem)` : width; // for what explains it
      col.style.setProperty("--width", room(column.width));
      if (column.phoneWidth) col.style.setProperty("--phone-width", room(column.phoneWidth));
      this.cols.push(col);
      group.append(col);
    }
    return group;
  }

  private headRow(): HTMLTableRowElement {
    const row = h("tr");
    this.options.columns.forEach((column, i) => {
      const head = h("th", { scope: "col", class: this.hideClass(column) });
      if (column.sort)
        head.append(
          h("button", { type: "button", class: "sort", onclick: () => this.sortOn(i) }, column.title),
        );
      else head.append(column.isTitleAway ? h("span", { class: "away" }, column.title) : column.title);
      if (column.hint) head.append(" ", whatIs(column.title, column.hint));
      this.heads.push(head);
      row.append(head);
    });
    return row;
  }

  // By a column: largest numbers first, then the other way round, then as it was. -1: as it was.
  sortOn(i: number): void {
    const firstDescending = this.options.columns[i]?.kind === "number";
    if (this.sortBy !== i) {
      this.sortBy = i;
      this.descending = firstDescending;
    } else if (this.descending === firstDescending) this.descending = !firstDescending;
    else this.sortBy = -1;
    this.heads.forEach((head, at) => {
      if (at === this.sortBy) head.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.sort();
    this.draw();
  }

  private sort(): void {
    const value = this.options.columns[this.sortBy]?.sort;
    this.sorted = this.rows;
    if (!value) return;
    const sign = this.descending ? -1 : 1;
    this.sorted = this.rows
      .map((row) => ({ row, value: value(row) }))
      .sort((a, b) => (a.value < b.value ? -sign : a.value > b.value ? sign : 0))
      .map((pair) => pair.row);
  }

  private drawNow(): void {
    const { rowHeight, key } = this.options;
    const rows = this.sorted;
    this.note.hidden = rows.length > 0;
    this.table.setAttribute("aria-rowcount", String(rows.length + 1));
    const { scrollTop, clientHeight } = this.scroller;
    const shown = this.wraps
      ? windowOfRows(scrollTop, clientHeight || 600, (i) => this.heightOf(i), rows.length, spareRows)
      : windowOf(scrollTop, clientHeight || 600, rowHeight, rows.length, spareRows);
    const used = new Set<string | number>();
    const focused = this.body.querySelector<HTMLElement>(":focus");
    let before: Element = this.above;
    for (let i = shown.first; i < shown.end; i++) {
      const row = rows[i] as T;
      const id = key(row);
      used.add(id);
      const element = this.made.get(id) ?? this.makeRow(id);
      this.fillRow(element, row, i);
      if (before.nextElementSibling !== element) before.after(element);
      before = element;
    }
    for (const [id, element] of this.made) {
      if (!used.has(id)) {
        element.remove();
        this.made.delete(id);
      } else if (this.wraps && element.offsetHeight > 0) this.heights.set(id, element.offsetHeight);
    }
    const left = rows.length - (shown.end - shown.first); // for paper, where nobody scrolls
    const more = left > 0 ? count(left) : undefined;
    if (this.node.dataset["more"] !== more) {
      if (more) this.node.dataset["more"] = more;
      else delete this.node.dataset["more"];
    }
    setHeight(this.above, shown.above);
    setHeight(this.below, shown.below);
    this.setTabStop(shown.first);
    // A row that is moved loses the focus.
    if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
  }

  private heightOf(i: number): number {
    return this.heights.get(this.options.key(this.sorted[i] as T)) ?? this.options.rowHeight;
  }

  // ---- the keyboard ----

  private controlOf(id: string | number | null): HTMLElement | null {
    const row = id === null ? undefined : this.made.get(id);
    return row && this.options.control ? row.querySelector<HTMLElement>(this.options.control) : null;
  }

  private indexOf(inside: Element): number {
    return Number(inside.closest("tr")?.getAttribute("aria-rowindex") ?? 0) - 2;
  }

  // Where the row that was reached is out of sight, Tab leads to the first one that exists.
  private setTabStop(first: number): void {
    if (!this.options.control) return;
    const row = this.sorted[first];
    if (!this.controlOf(this.reached) && row !== undefined) this.reached = this.options.key(row);
    for (const id of this.made.keys()) {
      const control = this.controlOf(id);
      if (control) control.tabIndex = id === this.reached ? 0 : -1;
    }
  }

  private reach(index: number): void {
    const row = this.sorted[index];
    if (row === undefined) return;
    const before = this.controlOf(this.reached);
    if (before) before.tabIndex = -1;
    this.reached = this.options.key(row);
    const control = this.controlOf(this.reached);
    if (control) control.tabIndex = 0;
  }

  private press(event: KeyboardEvent): void {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const index = this.indexOf(event.target as Element) + step;
    if (step === 0 || this.sorted[index] === undefined) return;
    event.preventDefault();
    const head = this.table.tHead?.offsetHeight ?? 0;
    let top = 0;
    for (let i = 0; i < index; i++) top += this.heightOf(i);
    const lowest = top + this.heightOf(index) + head - this.scroller.clientHeight;
    this.scroller.scrollTop = Math.min(Math.max(this.scroller.scrollTop, lowest), top);
    this.drawNow();
    this.reach(index);
    this.controlOf(this.reached)?.focus({ preventScroll: true });
  }

  // ---- rows ----

  private makeRow(id: string | number): HTMLTableRowElement {
    const row = h("tr");
    this.options.columns.forEach((column, i) =>
      row.append(h("td", { class: this.hideClass(column), hidden: (this.heads[i] as HTMLElement).hidden })),
    );
    row.style.height = `${this.options.rowHeight}px`;
    this.made.set(id, row);
    return row;
  }

  private fillRow(element: HTMLTableRowElement, row: T, index: number): void {
    element.setAttribute("aria-rowindex", String(index + 2));
    if (this.options.rowClass) setClass(element, this.options.rowClass(row));
    this.options.columns.forEach((column, i) => column.fill(element.cells[i] as HTMLTableCellElement, row));
  }
}

function spacer(): HTMLTableRowElement {
  return h("tr", { "aria-hidden": "true", class: "spacer" });
}

function setHeight(row: HTMLTableRowElement, height: number): void {
  row.style.height = `${height}px`;
  row.hidden = height === 0;
}
