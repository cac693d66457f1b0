// host.ts: the page that starts a training: a model, data, a few sliders.

import { get, Problem } from "../api";
import { h } from "../dom";
import { Field, SliderField, checkField, selectField, textField } from "../fields";
import type { Frame, Page } from "../page";
import { card } from "../parts";
import { countScale, logScale, powerScale } from "../scales";
import { goodName, rules, shuffles, wires } from "../spec";
import type { Job, JobSpec, Recipe } from "../types";
import { DataPart } from "./host_data";
import { ModelPart } from "./host_model";
import { refusal, StartForm, type StartOptions } from "./start_form";

// What the example models were made for.
const dataOf: Record<string, string[]> = {
  lenet5: ["fashion-mnist", "mnist"],
  "mlp-mnist": ["mnist", "fashion-mnist"],
  "resnet-cifar10": ["cifar-10"],
  "lstm-ptb": ["ptb"],
  "vector-to-sequence": ["toy:wave"],
  "encoder-decoder": ["toy:reverse"],
};

// A choice of which some take a number behind a colon: stale:4.
class NumberedChoice {
  readonly choice: Field;
  readonly number: Field;
  // numbers: for the words that take one, what it is called and what it is at first.
  constructor(
    label: string,
    name: string,
    options: [string, string][],
    private readonly numbers: Record<string, [string, string]>,
  ) {
    this.choice = selectField(label, name, options);
    this.number = new Field("", h("input", { type: "text", inputmode: "decimal", name: `${name}-number` }));
    this.choice.input.addEventListener("change", () => this.show());
    this.show();
  }
  get value(): string {
    const word = this.choice.input.value;
    return word in this.numbers ? `${word}:${this.number.input.value.trim()}` : word;
  }
  set value(text: string) {
    const [word = "", number] = text.split(":");
    this.choice.input.value = word;
    this.show();
    if (number) this.number.input.value = number;
  }
  private show(): void {
    const number = this.numbers[this.choice.input.value];
    this.number.node.hidden = number === undefined;
    if (!number) return;
    this.number.setLabel(number[0]);
    this.number.input.value = number[1];
  }
}

class Settings {
  readonly rate = new SliderField(
    "Learning rate",
    "rate",
    logScale(0.00001, 10),
    0.02,
    "How far a step goes.",
  );
  readonly batch = new SliderField("Batch size", "batch", powerScale(1, 8192), 64, "Samples a round.");
  readonly epochs = new SliderField("Epochs", "epochs", countScale(1, 1000), 6, "Passes over the data.");
  readonly workersMin = new SliderField(
    "Workers at least",
    "workers_min",
    countScale(1, 1000),
    1,
    "The job waits until this many are there.",
  );
  readonly workersMax = new SliderField(
    "Workers at most",
    "workers_max",
    countScale(1, 1000),
    1000,
    "More have to wait for others to leave.",
  );
  readonly mode = new NumberedChoice(
    "Mode",
    "mode",
    [
      ["sync", "sync: all wait; exact"],
      ["stale", "stale: some rounds ahead"],
      ["async", "async: nobody waits"],
      ["local", "local: own rounds, then the mean"],
    ],
    { stale: ["Rounds ahead, at most", "4"], local: ["Rounds of one's own", "8"] },
  );
  readonly wire = selectField("Wire format", "wire", wires);
  readonly optimizer: Field;
  readonly schedule = textField(
    "Schedule",
    "schedule",
    "Such as constant, cosine, exponential 0.95. Empty: as the model says.",
  );
  readonly seed = textField("Seed", "seed", "Empty: as the model says.", { inputmode: "numeric" });
  readonly valid = textField(
    "Share held out",
    "valid",
    "Such as 0.1, of the training samples, to validate.",
    { inputmode: "decimal" },
  );
  readonly earlyStop = textField("Stop early", "early_stop", "After this many epochs without progress.", {
    inputmode: "numeric",
  });
  readonly rule = selectField(
    "Rule",
    "rule",
    rules,
    "How the contributions of a round become one. All but mean take some wrong ones; not with async.",
  );
  readonly shuffle = selectField(
    "Shuffle",
    "shuffle",
    shuffles,
    "Lanes are for large data: a worker fetches only its own part, and keeps it from epoch to epoch.",
  );
  readonly augment = textField(
    "Augment",
    "augment",
    "Images only: flip mirrors them at random, crop 4 moves them by up to 4 pixels. Empty: as the model says.",
  );
  readonly audits = checkField(
    "Audits",
    "guard",
    "Units are computed again by others now and then; a volunteer who sends wrong results is banned.",
  );
  readonly isPrivate = checkField(
    "Private",
    "private",
    "Only people with an invitation to this job see it and may help.",
  );
  private readonly sliders: Record<string, SliderField> = {
    rate: this.rate,
    batch: this.batch,
    epochs: this.epochs,
    workers_min: this.workersMin,
    workers_max: this.workersMax,
  };
  readonly advanced: HTMLDetailsElement;
  readonly node: HTMLElement;

  constructor(optimizers: string[]) {
    this.optimizer = selectField("Optimizer", "optimizer", [
      ["", "as the model says"],
      ...optimizers.map((name): [string, string] => [name, name]),
    ]);
    this.audits.input.checked = true;
    this.workersMin.changed = () => {
      if (this.workersMax.value < this.workersMin.value) this.workersMax.set(this.workersMin.value);
    };
    this.workersMax.changed = () => {
      if (this.workersMax.value < this.workersMin.value) this.workersMin.set(this.workersMax.value);
    };
    this.advanced = h(
      "details",
      { class: "advanced" },
      h("summary", null, "Advanced"),
      h(
        "div",
        { class: "columns" },
        h("div", { class: "stack" }, this.mode.choice.node, this.mode.number.node),
        this.wire.node,
        this.optimizer.node,
        this.schedule.node,
        this.seed.node,
        this.valid.node,
        this.earlyStop.node,
        this.rule.node,
        this.shuffle.node,
        this.augment.node,
        this.audits.node,
        this.isPrivate.node,
      ),
    );
    this.node = h(
      "div",
      { class: "stack" },
      h("div", { class: "columns three" }, this.rate.node, this.batch.node, this.epochs.node),
      h("div", { class: "columns" }, this.workersMin.node, this.workersMax.node),
      this.advanced,
    );
  }

  propose(recipe: Recipe): void {
    const where = "Model says";
    if (recipe.rate !== undefined) this.rate.propose(recipe.rate, where);
    if (recipe.batch !== undefined) this.batch.propose(recipe.batch, where);
    if (recipe.epochs !== undefined) this.epochs.propose(recipe.epochs, where);
    const said = (text: string | number | undefined, otherwise: string): string =>
      text === undefined ? otherwise : `The model's text says ${text}.`;
    this.optimizer.setHint(said(recipe.optimizer, ""));
    this.schedule.setHint(
      `Such as constant, cosine, exponential 0.95. ${said(recipe.schedule, "Empty: as the model says.")}`,
    );
    this.seed.setHint(said(recipe.seed, "Empty: as the model says."));
  }

  // As another job had it. Its recipe is in the text of its model, which proposes it.
  copy(spec: Partial<JobSpec>): void {
    if (spec.workers_min !== undefined) this.workersMin.set(spec.workers_min);
    if (spec.workers_max !== undefined) this.workersMax.set(spec.workers_max);
    if (spec.mode) this.mode.value = spec.mode;
    if (spec.wire) this.wire.input.value = spec.wire;
    if (spec.valid) this.valid.input.value = String(spec.valid);
    if (spec.rule) this.chooseRule(spec.rule);
    this.audits.input.checked = spec.guard ?? true;
    this.isPrivate.input.checked = spec.private ?? false;
  }

  // One with other numbers than those that the page offers is offered, too.
  private chooseRule(rule: string): void {
    if (!rules.some(([word]) => word === rule)) this.rule.input.append(h("option", { value: rule }, rule));
    this.rule.input.value = rule;
  }

  // Puts an error beside the field that it names; false when there is no such field.
  setError(name: string, text: string): boolean {
    const hidden: Record<string, { setError(text: string): void }> = {
      mode: this.mode.choice,
      wire: this.wire,
      optimizer: this.optimizer,
      schedule: this.schedule,
      seed: this.seed,
      valid: this.valid,
      early_stop: this.earlyStop,
      rule: this.rule,
      shuffle: this.shuffle,
      augment: this.augment,
    };
    if (hidden[name]) this.advanced.open = true;
    const field = this.sliders[name] ?? hidden[name];
    field?.setError(text);
    return field !== undefined;
  }

  clearErrors(): void {
    for (const field of Object.values(this.sliders)) field.setError("");
    for (const field of [
      this.mode.choice,
      this.wire,
      this.optimizer,
      this.schedule,
      this.seed,
      this.valid,
      this.earlyStop,
      this.rule,
      this.shuffle,
      this.augment,
    ])
      field.setError("");
  }

  // Only what was touched goes along; the rest is the model's to say. Throws what is wrong with a field.
  spec(): Partial<JobSpec> {
    for (const [name, field] of Object.entries(this.sliders))
      if (field.wrong) throw new Problem(0, "bad_request", field.wrong, name);
    const spec: Partial<JobSpec> = {
      mode: this.mode.value,
      wire: this.wire.input.value,
      workers_min: this.workersMin.value,
      workers_max: this.workersMax.value,
      private: this.isPrivate.input.checked,
    };
    if (this.rate.touched) spec.rate = this.rate.value;
    if (this.batch.touched) spec.batch = this.batch.value;
    if (this.epochs.touched) spec.epochs = this.epochs.value;
    if (this.optimizer.input.value) spec.optimizer = this.optimizer.input.value;
    if (this.schedule.input.value.trim()) spec.schedule = this.schedule.input.value.trim();
    if (this.rule.input.value !== "mean") spec.rule = this.rule.input.value;
    if (this.shuffle.input.value) spec.shuffle = this.shuffle.input.value;
    if (this.augment.input.value.trim()) spec.augment = this.augment.input.value.trim();
    if (!this.audits.input.checked) spec.guard = false;
    for (const [name, field] of [
      ["seed", this.seed],
      ["valid", this.valid],
      ["early_stop", this.earlyStop],
    ] as const) {
      const text = field.input.value.trim();
      if (text === "") continue;
      const n = Number(text);
      if (!Number.isFinite(n)) throw new Problem(0, "bad_request", "must be a number", name);
      spec[name] = n;
    }
    return spec;
  }
}

const starting: StartOptions = {
  title: "Host",
  heading: "Host a training",
  doing: "hosting",
  noun: "job",
};

export function hostPage(frame: Frame, from: number | null): Page {
  const refused = refusal(frame, starting);
  if (refused) return refused;
  const model = new ModelPart();
  const data = new DataPart();
  const settings = new Settings(frame.server.optimizers);
  const name = textField("Name of the job", "name", "Empty: called after the model and the data.");
  let modelName = "";

  model.checked = (recipe) => settings.propose(recipe);
  model.chosen = (chosen) => {
    modelName = chosen;
    if (chosen && !from) data.propose(dataOf[chosen] ?? []);
  };
  data.changed = (chosen) => {
    model.data = chosen?.name ?? "";
    model.target = data.chosenTarget;
    model.recheck();
  };

  const form = new StartForm(frame, starting, {
    clearErrors() {
      name.setError("");
      data.setError("");
      data.setTargetError("");
      settings.clearErrors();
    },
    async spec() {
      const chosen = settings.spec();
      if (!(await model.settled())) return null;
      const spec: JobSpec = {
        name: name.input.value.trim() || goodName(`${modelName || "own model"} on ${data.name}`),
        model: model.editor.text,
        data: data.name,
        ...chosen,
      };
      if (data.chosenTarget) spec.target = data.chosenTarget;
      return spec;
    },
    setError({ field, message, line }) {
      if (field === "model") model.setError(message, line ?? 0);
      else if (field === "data") data.setError(message);
      else if (field === "target") data.setTargetError(message);
      else if (field === "name") name.setError(message);
      else return settings.setError(field ?? "", message);
      return true;
    },
    async fill() {
      const earlier = from ? (await get<Job>(`/jobs/${from}`)).spec : null;
      if (earlier) settings.copy(earlier);
      if (earlier?.name) name.input.value = earlier.name;
      await data.start(earlier?.data ?? null, earlier?.target ?? null);
      await model.start(earlier?.model ?? null);
    },
  });
  return form.page(
    "page",
    h(
      "div",
      { class: "hostgrid" },
      h(
        "div",
        { class: "stack wide" },
        card("1. Model", model.node),
        card("2. Data", data.node),
        card("3. Training", name.node, settings.node),
        form.row,
      ),
      h("div", { class: "sticky" }, card("The network", model.drawing)),
    ),
  );
}
