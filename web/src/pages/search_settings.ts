// search_settings.ts: the parts of the Search page that say what to predict, how results are judged, how
// long to search and where.

import { Problem } from "../api";
import { h, replace, setText } from "../dom";
import { checkField, Field, selectField, textField } from "../fields";
import { canBeTarget, metricsOf, problemOf, problemText, schedulers } from "../search_spec";
import { SpacePart } from "../search_space";
import type { Profile, SearchSpec } from "../search_types";

function numberField(
  label: string,
  name: string,
  hint: string,
  more: Record<string, string | number>,
): Field {
  return new Field(label, h("input", { type: "number", name, step: "any", ...more }), hint);
}

function newestText(column: string): string {
  return `the newest, by ${column}`;
}

export class TargetPart {
  readonly node: HTMLElement;
  changed: () => void = () => undefined;
  private profile: Profile | null = null;
  private wanted: string | null = null; // of an earlier search
  private readonly target = selectField("Column to predict", "target", []);
  private readonly problem = selectField("What it is", "problem", [
    ["", "as found"],
    ["classes", "classes"],
    ["regression", "numbers"],
  ]);
  private readonly metric = selectField("Judged by", "metric", []);
  private readonly verdict = h("p", { class: "verdict", role: "status" });

  constructor() {
    this.target.input.addEventListener("change", () => this.show());
    this.problem.input.addEventListener("change", () => this.showMetrics());
    this.node = h(
      "div",
      { class: "stack" },
      h("div", { class: "columns three" }, this.target.node, this.problem.node, this.metric.node),
      this.verdict,
    );
  }

  get name(): string {
    return this.target.input.value;
  }

  set(profile: Profile): void {
    const before = this.wanted ?? (this.profile ? this.name : "");
    this.profile = profile;
    const columns = profile.columns.filter(canBeTarget);
    replace(
      this.target.input,
      h("option", { value: "" }, "choose"),
      ...columns.map((column) => h("option", { value: column.name }, column.name)),
    );
    this.target.input.value = columns.some((column) => column.name === before) ? before : "";
    if (this.target.input.value) this.wanted = null;
    this.show();
  }

  copy(spec: Partial<SearchSpec>): void {
    this.wanted = spec.target ?? null;
    this.problem.input.value = spec.problem ?? "";
    this.showMetrics();
    this.metric.input.value = spec.metric ?? "";
  }

  spec(): Partial<SearchSpec> {
    if (this.name === "") throw new Problem(0, "bad_request", "choose the column to predict", "target");
    const spec: Partial<SearchSpec> = { target: this.name };
    if (this.problem.input.value) spec.problem = this.problem.input.value;
    if (this.metric.input.value) spec.metric = this.metric.input.value;
    return spec;
  }

  setError(field: string, text: string): boolean {
    const fields: Record<string, Field> = { target: this.target, problem: this.problem, metric: this.metric };
    fields[field]?.setError(text);
    return field in fields;
  }

  clearErrors(): void {
    for (const field of [this.target, this.problem, this.metric]) field.setError("");
  }

  private show(): void {
    this.target.setError("");
    const column = this.profile?.columns.find((one) => one.name === this.name);
    setText(this.verdict, column ? problemText(column) : "");
    if (column && column.missing > 0)
      setText(this.verdict, `${problemText(column)} Rows without it are left out.`);
    this.showMetrics();
    this.changed();
  }

  private showMetrics(): void {
    const column = this.profile?.columns.find((one) => one.name === this.name);
    const said = this.problem.input.value;
    const isRegression =
      said === "regression" || (said === "" && column !== undefined && problemOf(column) === "regression");
    const before = this.metric.input.value;
    const choices = metricsOf[isRegression ? "regression" : "classes"];
    replace(this.metric.input, ...choices.map(([value, text]) => h("option", { value }, text)));
    this.metric.input.value = choices.some(([value]) => value === before) ? before : "";
  }
}

export class SettingsPart {
  readonly node: HTMLElement;
  readonly space: SpacePart;
  private readonly minutes = numberField("Minutes", "minutes", "Empty: no limit in time.", {
    min: 0.1,
    value: 10,
  });
  private readonly trials = numberField("Trials at most", "trials", "Empty: as many as the time allows.", {
    min: 1,
    step: 1,
  });
  private readonly name = textField("Name of the search", "name", "Empty: called after the table.");
  private readonly scheduler = selectField("What is tried next", "scheduler", schedulers);
  private readonly folds = selectField("How trials are judged", "folds", [
    ["0", "as usual: 5 folds below 2,000 rows"],
    ["1", "hold-out: a part is kept aside"],
    ...[3, 5, 10].map((n): [string, string] => [String(n), `${n} folds: each part judges once`]),
  ]);
  private readonly valid = numberField(
    "Share that is held out",
    "valid",
    "Of the rows, without folds. Empty: 0.2.",
    { min: 0.01, max: 0.9 },
  );
  private readonly testShare = numberField(
    "Share for the last test",
    "test_share",
    "Of the rows; nothing learns from them.",
    { min: 0, max: 0.9, value: 0.2 },
  );
  private readonly time = selectField(
    "Rows that are held out",
    "time_column",
    [["", "any, by chance"]],
    "The newest ones tell how well the future is predicted.",
  );
  private readonly epochs = numberField(
    "Epochs of a whole training",
    "epochs",
    "Passes over the rows. Empty: as suits their number.",
    { min: 1, step: 1 },
  );
  private readonly seed = numberField("Seed", "seed", "The same seed searches the same way.", {
    min: 0,
    step: 1,
    value: 1,
  });
  private readonly workersMin = numberField("Workers at least", "workers_min", "", {
    min: 1,
    step: 1,
    value: 1,
  });
  private readonly workersMax = numberField("Workers at most", "workers_max", "Empty: all that come.", {
    min: 1,
    step: 1,
  });
  private readonly isPrivate = checkField(
    "Private",
    "private",
    "Only people with an invitation to this search see it and may help.",
  );
  private readonly advanced: HTMLDetailsElement;
  private readonly fields: Record<string, Field> = {
    budget_s: this.minutes,
    trials: this.trials,
    name: this.name,
    scheduler: this.scheduler,
    folds: this.folds,
    valid: this.valid,
    test_share: this.testShare,
    time_column: this.time,
    epochs: this.epochs,
    seed: this.seed,
    workers_min: this.workersMin,
    workers_max: this.workersMax,
  };

  constructor(activations: string[]) {
    this.space = new SpacePart(activations);
    this.advanced = h(
      "details",
      { class: "advanced" },
      h("summary", null, "Advanced"),
      h(
        "div",
        { class: "columns" },
        this.scheduler.node,
        this.folds.node,
        this.valid.node,
        this.testShare.node,
        this.time.node,
        this.epochs.node,
        this.seed.node,
        this.workersMin.node,
        this.workersMax.node,
        this.isPrivate.node,
      ),
    );
    this.node = h(
      "div",
      { class: "stack" },
      h("div", { class: "columns three" }, this.minutes.node, this.trials.node, this.name.node),
      this.advanced,
    );
  }

  // Columns that rows can be parted by.
  set(profile: Profile): void {
    const before = this.time.input.value;
    const columns = profile.columns.filter((column) => column.kind === "date" || column.kind === "number");
    replace(
      this.time.input,
      h("option", { value: "" }, "any, by chance"),
      ...columns.map((column) => h("option", { value: column.name }, newestText(column.name))),
    );
    this.time.input.value = columns.some((column) => column.name === before) ? before : "";
  }

  copy(spec: Partial<SearchSpec>): void {
    const text = (n: number | undefined): string => (n ? String(n) : "");
    this.minutes.input.value = spec.budget_s ? String(spec.budget_s / 60) : "";
    this.trials.input.value = text(spec.trials);
    this.name.input.value = spec.name ?? "";
    if (spec.scheduler) this.scheduler.input.value = spec.scheduler;
    this.chooseFolds(spec.folds ?? 0);
    this.valid.input.value = text(spec.valid);
    this.testShare.input.value = String(spec.test_share ?? 0.2);
    if (spec.time_column) {
      this.time.input.append(h("option", { value: spec.time_column }, newestText(spec.time_column)));
      this.time.input.value = spec.time_column;
    }
    this.epochs.input.value = text(spec.epochs);
    this.seed.input.value = String(spec.seed ?? 1);
    this.workersMin.input.value = String(spec.workers_min ?? 1);
    this.isPrivate.input.checked = spec.private ?? false;
    this.space.text = spec.space ?? "";
  }

  private chooseFolds(folds: number): void {
    const value = String(folds);
    const select = this.folds.input as HTMLSelectElement;
    if (![...select.options].some((option) => option.value === value))
      select.append(h("option", { value }, `${value} folds`));
    select.value = value;
  }

  // Throws what is wrong with a field.
  spec(): Partial<SearchSpec> {
    const spec: Partial<SearchSpec> = {
      scheduler: this.scheduler.input.value,
      budget_s: (this.number("budget_s") ?? 0) * 60,
      trials: this.number("trials") ?? 0,
      folds: Number(this.folds.input.value),
      test_share: this.number("test_share") ?? 0,
      seed: this.number("seed") ?? 1,
      workers_min: this.number("workers_min") ?? 1,
      private: this.isPrivate.input.checked,
    };
    if (spec.budget_s === 0 && spec.trials === 0)
      throw new Problem(0, "bad_request", "say how long: minutes, or trials", "budget_s");
    const more: [keyof SearchSpec & ("valid" | "epochs" | "workers_max"), number | null][] = [
      ["valid", this.number("valid")],
      ["epochs", this.number("epochs")],
      ["workers_max", this.number("workers_max")],
    ];
    for (const [name, n] of more) if (n !== null) spec[name] = n;
    if (this.name.input.value.trim()) spec.name = this.name.input.value.trim();
    if (this.time.input.value) spec.time_column = this.time.input.value;
    if (this.space.text) spec.space = this.space.text;
    return spec;
  }

  private number(name: string): number | null {
    const input = (this.fields[name] as Field).input as HTMLInputElement;
    if (input.validity.badInput) throw new Problem(0, "bad_request", "must be a number", name);
    if (input.value === "") return null;
    if (!input.validity.valid) throw new Problem(0, "bad_request", input.validationMessage, name);
    return Number(input.value);
  }

  setError(field: string, text: string): boolean {
    const at = this.fields[field];
    at?.setError(text);
    if (at && this.advanced.contains(at.node)) this.advanced.open = true;
    return at !== undefined;
  }

  clearErrors(): void {
    for (const field of Object.values(this.fields)) field.setError("");
    this.space.clearError();
  }
}
