// search_table.ts: the part of the Search page where a table is chosen or uploaded.

import { get, remove } from "../api";
import { h, replace } from "../dom";
import { selectField } from "../fields";
import { bytes, count } from "../format";
import { ask, busy, button, notice } from "../parts";
import type { Dataset } from "../types";
import { Uploader } from "../upload";

export class TablePart {
  readonly node: HTMLElement;
  chosen: (set: Dataset | null) => void = () => undefined;
  private sets: Dataset[] = [];
  private readonly select = selectField("Table", "table", []);
  private readonly facts = h("p", { class: "muted small" });
  private readonly drop = button("Delete this table", "plain", () => void this.forget());
  private readonly uploads: HTMLDetailsElement;
  private readonly choice: HTMLElement;

  constructor() {
    this.select.input.addEventListener("change", () => this.show());
    const uploader = new Uploader((set) => void this.uploaded(set), "table");
    this.uploads = h(
      "details",
      { open: true },
      h("summary", null, "Upload a CSV file"),
      h(
        "p",
        { class: "hint uploadhelp" },
        "With or without a header; commas, semicolons or tabs; UTF-8 or Latin-1; also as .csv.gz. Two files, " +
          "of which one has test in its name, are rows to learn from and rows to judge by.",
      ),
      uploader.node,
    );
    this.choice = h("div", { class: "row bottom" }, this.select.node, this.drop);
    this.node = h("div", { class: "stack" }, this.choice, this.facts, this.uploads);
  }

  get name(): string {
    return this.select.input.value;
  }

  async start(name: string | null): Promise<void> {
    await this.fetchSets();
    if (name !== null) this.select.input.value = name;
    this.uploads.open = this.sets.length === 0;
    this.show();
  }

  setError(text: string): void {
    this.select.setError(text);
  }

  private async fetchSets(): Promise<void> {
    const all = (await get<{ datasets: Dataset[] }>("/datasets")).datasets;
    this.sets = all.filter((set) => set.kind === "table").sort((a, b) => b.created - a.created);
    this.choice.hidden = this.sets.length === 0;
    replace(this.select.input, ...this.sets.map((set) => h("option", { value: set.name }, set.name)));
  }

  private show(): void {
    const set = this.sets.find((one) => one.name === this.name) ?? null;
    this.select.setError("");
    this.facts.textContent = set
      ? [
          set.profile && `${count(set.profile.rows)} rows`,
          set.files.map((file) => file.name).join(", "),
          bytes(set.bytes),
        ]
          .filter(Boolean)
          .join(" · ")
      : "There is no table yet: upload one.";
    this.drop.hidden = !set || set.built_in;
    this.chosen(set);
  }

  private async uploaded(set: Dataset): Promise<void> {
    await this.fetchSets();
    this.select.input.value = set.name;
    this.uploads.open = false;
    this.show();
    this.select.input.focus();
    notice(`${set.name} is ready.`);
  }

  private async forget(): Promise<void> {
    const { name } = this;
    const sure = await ask(`Delete the table “${name}”?`, "Its files are removed from the server.", "Delete");
    if (!sure) return;
    await busy(this.drop, async () => {
      await remove(`/datasets/${encodeURIComponent(name)}`);
      await this.fetchSets();
      this.show();
    });
  }
}
