// host_data.ts: the part of the Host page where data is chosen or uploaded.

import { get, remove } from "../api";
import { h, replace } from "../dom";
import { selectField } from "../fields";
import { bytes, count } from "../format";
import { ask, busy, button, notice } from "../parts";
import { usualTarget } from "../spec";
import type { Dataset } from "../types";
import { Uploader } from "../upload";

function some(names: string[]): string {
  return names.slice(0, 12).join(", ") + (names.length > 12 ? ", …" : "");
}

function describe(set: Dataset): string[] {
  const { train, valid, test } = set.samples;
  const parts = [`${count(train)} to train on`];
  if (valid) parts.push(`${count(valid)} to validate`);
  if (test) parts.push(`${count(test)} to test`);
  const facts = [parts.join(", "), set.shape && `a sample is ${set.shape}`, bytes(set.bytes)];
  if (set.classes) facts.push(`${set.classes.length} classes: ${some(set.classes)}`);
  if (set.columns)
    facts.push(`${set.columns.length} columns: ${some(set.columns.map((column) => column.name))}`);
  return facts.filter((fact): fact is string => Boolean(fact));
}

export class DataPart {
  readonly node: HTMLElement;
  changed: (set: Dataset | null) => void = () => undefined;
  private sets: Dataset[] = [];
  private usual: string | null = null; // the target that the chosen set was made for
  private readonly select = selectField("Data set", "data", []);
  private readonly target = selectField("Target column", "target", [], "What the network is to predict.");
  private readonly facts = h("ul", { class: "facts muted small" });
  private readonly drop = button("Delete this data set", "plain", () => void this.forget());
  private readonly uploads: HTMLDetailsElement;

  constructor() {
    this.select.input.addEventListener("change", () => this.show());
    this.target.input.addEventListener("change", () => this.changed(this.chosen()));
    this.drop.hidden = true;
    this.target.node.hidden = true;
    const uploader = new Uploader((set) => void this.uploaded(set));
    this.uploads = h("details", null, h("summary", null, "Upload your own"), uploader.node);
    this.node = h(
      "div",
      { class: "stack" },
      h("div", { class: "row bottom" }, this.select.node, this.drop),
      this.facts,
      this.target.node,
      this.uploads,
    );
  }

  get name(): string {
    return this.select.input.value;
  }

  // The target, where it is another one than the set was made for.
  get chosenTarget(): string | null {
    const target = this.target.node.hidden ? "" : this.target.input.value;
    return target === "" || target === this.usual ? null : target;
  }

  async start(name: string | null, target: string | null): Promise<void> {
    await this.fetchSets();
    if (name !== null && this.sets.some((set) => set.name === name)) this.choose(name);
    else this.show();
    if (target !== null) this.target.input.value = target;
  }

  // What fits a model that is built in.
  propose(names: string[]): void {
    const name = names.find((one) => this.sets.some((set) => set.name === one));
    if (name) this.choose(name);
  }

  setError(text: string): void {
    this.select.setError(text);
  }

  setTargetError(text: string): void {
    this.target.setError(text);
  }

  private choose(name: string): void {
    this.select.input.value = name;
    this.show();
  }

  private async fetchSets(): Promise<void> {
    const all = (await get<{ datasets: Dataset[] }>("/datasets")).datasets;
    this.sets = all.filter((set) => set.kind !== "table"); // those are for searches
    const group = (label: string, sets: Dataset[]): HTMLElement | null =>
      sets.length === 0
        ? null
        : h("optgroup", { label }, ...sets.map((set) => h("option", { value: set.name }, set.name)));
    replace(
      this.select.input,
      group(
        "Built in",
        this.sets.filter((set) => set.built_in),
      ),
      group(
        "Uploaded",
        this.sets.filter((set) => !set.built_in),
      ),
    );
  }

  private chosen(): Dataset | null {
    return this.sets.find((one) => one.name === this.name) ?? null;
  }

  private show(): void {
    const set = this.chosen();
    this.select.setError("");
    replace(
      this.facts,
      ...(set
        ? describe(set).map((fact) => h("li", null, fact))
        : [h("li", null, "There is no data set yet: upload one.")]),
    );
    this.drop.hidden = !set || set.built_in;
    const columns = set?.columns ?? [];
    this.target.node.hidden = columns.length === 0;
    replace(this.target.input, ...columns.map((column) => h("option", { value: column.name }, column.name)));
    this.usual = set && usualTarget(set);
    if (this.usual !== null) this.target.input.value = this.usual;
    this.changed(set);
  }

  private async uploaded(set: Dataset): Promise<void> {
    await this.fetchSets();
    this.choose(set.name);
    this.uploads.open = false;
    this.select.input.focus();
    notice(`${set.name} is ready: ${count(set.samples.train)} samples to train on.`);
  }

  private async forget(): Promise<void> {
    const name = this.name;
    const sure = await ask(
      `Delete the data set “${name}”?`,
      "Its files are removed from the server.",
      "Delete",
    );
    if (!sure) return;
    await busy(this.drop, async () => {
      await remove(`/datasets/${encodeURIComponent(name)}`);
      await this.fetchSets();
      this.show();
    });
  }
}
