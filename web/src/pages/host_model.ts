// host_model.ts: the part of the Host page where a model is chosen or written, checked as one types, and
// drawn.

import { get, post, put, remove, textOf } from "../api";
import { h, replace, setText } from "../dom";
import { drawLayers } from "../drawing";
import { Editor } from "../editor";
import { selectField, textField } from "../fields";
import { count, short } from "../format";
import { Latest } from "../latest";
import { ask, busy, button, notice } from "../parts";
import type { ModelCheck, ModelInfo, Recipe } from "../types";

const checkAfterMs = 300;

export class ModelPart {
  readonly node: HTMLElement;
  readonly drawing: HTMLElement;
  readonly editor = new Editor("The model's text, one layer a line");
  checked: (recipe: Recipe) => void = () => undefined; // no mistakes were found
  chosen: (name: string) => void = () => undefined;
  data = ""; // the data set to check against; "" for none
  target: string | null = null; // and its target column, where that is another than it was made for
  private models: ModelInfo[] = [];
  private text = ""; // as it was fetched
  private readonly select = selectField("Start from", "model-name", []);
  private readonly saveName = textField("Keep it as", "save-name", "", { placeholder: "my-model" });
  private readonly drop = button("Delete this model", "plain", () => void this.forget());
  private readonly picture = h("div", {
    class: "scroller picture",
    tabindex: 0,
    role: "region",
    "aria-label": "Drawing of the network",
  });
  private readonly facts = h("p", { class: "muted small" });
  private isRight = false; // as of the last check
  private isUnchecked = false; // the server could not be asked
  private loads = 0; // a text that comes after a newer choice is dropped
  private loading: Promise<void> = Promise.resolve();
  private readonly checks = new Latest(checkAfterMs, (signal) => this.check(signal));

  constructor() {
    this.editor.changed = () => this.recheck();
    this.select.input.addEventListener("change", () => {
      this.loading = this.load(this.select.input.value);
    });
    this.drop.hidden = true;
    const save = button("Keep", "plain", () => void busy(save, () => this.save()));
    this.node = h(
      "div",
      { class: "stack" },
      h("div", { class: "row bottom" }, this.select.node, this.drop),
      this.editor.node,
      h(
        "details",
        null,
        h("summary", null, "Keep this model for later"),
        h("div", { class: "row bottom" }, this.saveName.node, save),
      ),
    );
    this.drawing = h("div", { class: "stack" }, this.facts, this.picture);
    setText(this.facts, "The drawing appears when the text is right.");
  }

  async start(text: string | null): Promise<void> {
    await this.fetchModels();
    if (text !== null) this.write(text, "");
    else {
      const first = this.models.find((model) => model.name === "lenet5") ?? this.models[0];
      if (first) await this.load(first.name);
    }
  }

  // Checks anew, against other data say.
  recheck(): void {
    this.isRight = false;
    this.checks.soon();
  }

  // Waits for what is being fetched or checked. False: the text is wrong, and the place is shown.
  async settled(): Promise<boolean> {
    await this.loading;
    if (this.isUnchecked) this.checks.now();
    await this.checks.settled();
    if (!this.isRight) this.editor.showMistake();
    return this.isRight;
  }

  setError(text: string, line: number): void {
    this.editor.say(line > 0 ? `Line ${line}: ${text}` : text, line, true);
    if (line > 0) this.editor.show(line);
  }

  private async fetchModels(): Promise<void> {
    this.models = (await get<{ models: ModelInfo[] }>("/models")).models;
    const group = (label: string, models: ModelInfo[]): HTMLElement | null =>
      models.length === 0
        ? null
        : h(
            "optgroup",
            { label },
            ...models.map((m) => h("option", { value: m.name }, `${m.name} (${short(m.weights)} weights)`)),
          );
    replace(
      this.select.input,
      h("option", { value: "" }, "An empty page"),
      group(
        "Built in",
        this.models.filter((model) => model.built_in),
      ),
      group(
        "Kept here",
        this.models.filter((model) => !model.built_in),
      ),
    );
  }

  private async load(name: string): Promise<void> {
    const number = ++this.loads;
    this.drop.hidden = this.models.find((model) => model.name === name)?.built_in ?? true;
    if (name === "") {
      this.write("input  1x28x28\n\nloss   cross-entropy\n", "");
      return;
    }
    try {
      const model = await get<{ text: string }>(`/models/${encodeURIComponent(name)}`);
      if (number === this.loads) this.write(model.text, name);
    } catch (thrown) {
      if (number === this.loads) this.editor.say(textOf(thrown), 0, true);
    }
  }

  private write(text: string, name: string): void {
    this.text = text;
    this.editor.text = text;
    this.select.input.value = name;
    this.chosen(name);
    this.checks.now();
  }

  private async check(signal: AbortSignal): Promise<void> {
    this.isUnchecked = false;
    try {
      const body = {
        text: this.editor.text,
        ...(this.data ? { data: this.data } : {}),
        ...(this.target ? { target: this.target } : {}),
      };
      const answer = await post<ModelCheck>("/models/check", body, signal);
      if (!signal.aborted) this.show(answer);
    } catch (thrown) {
      if (signal.aborted) return;
      this.isRight = false;
      this.isUnchecked = true;
      this.editor.say(`The text could not be checked: ${textOf(thrown)}.`, 0, true);
    }
  }

  private show(answer: ModelCheck): void {
    this.isRight = answer.ok;
    if (!answer.ok) {
      const { line = 0, column, text } = answer.error;
      const where = line > 0 ? `Line ${line}${column ? `, column ${column}` : ""}: ` : "";
      this.editor.say(where + text, line, true);
      this.picture.classList.add("stale");
      return;
    }
    const edited = this.editor.text !== this.text ? ", changed by you" : "";
    this.editor.say(
      `No mistakes${edited}: ${count(answer.weights)} weights, ${answer.layers.length} layers.`,
      0,
      false,
    );
    setText(
      this.facts,
      `${count(answer.weights)} weights · ${short(answer.flops_per_sample)} operations a sample`,
    );
    this.picture.classList.remove("stale");
    replace(
      this.picture,
      drawLayers(answer.layers, (line) => this.editor.show(line)),
    );
    this.checked(answer.recipe);
  }

  private async save(): Promise<void> {
    const name = this.saveName.input.value.trim();
    this.saveName.setError(name === "" ? "It needs a name." : "");
    if (name === "") return;
    await put(`/models/${encodeURIComponent(name)}`, { text: this.editor.text });
    await this.fetchModels();
    this.select.input.value = name;
    this.drop.hidden = false;
    notice(`Kept as ${name}.`);
  }

  private async forget(): Promise<void> {
    const name = this.select.input.value;
    if (
      !(await ask(
        `Delete the model “${name}”?`,
        "Jobs that were started with it keep their copy of the text.",
        "Delete",
      ))
    )
      return;
    await busy(this.drop, async () => {
      await remove(`/models/${encodeURIComponent(name)}`);
      await this.fetchModels();
      this.drop.hidden = true;
    });
  }
}
