// search_space.ts: what a search may try: simple controls for depth, widths and activations, and the whole
// text for who wants more. The text is what counts; a control changes its own line of it and follows it.

import { h, newId, setText } from "./dom";
import { Editor } from "./editor";
import { Field } from "./fields";
import { parseRange, rangeText, spaceLine, withSpaceLine } from "./search_spec";

interface RangeControl {
  setting: string;
  log: boolean;
  least: number;
  most: number;
  from: Field;
  to: Field;
}

function numberInput(name: string, least: number, most: number): HTMLInputElement {
  return h("input", { type: "number", name, min: least, max: most, step: 1, placeholder: "usual" });
}

// With one end alone the other is the same; null: nothing was said.
function endsOf({ from, to }: RangeControl): [number, number] | null {
  const [low, high] = [from.input.value, to.input.value];
  if (low === "" && high === "") return null;
  return [Number(low || high), Number(high || low)];
}

export class SpacePart {
  readonly node: HTMLElement;
  private readonly editor = new Editor("One setting a line");
  private readonly ranges: RangeControl[];
  private readonly boxes = new Map<string, HTMLInputElement>();
  private readonly expert: HTMLDetailsElement;
  private readonly own = h("p", { class: "hint", hidden: true });

  constructor(activations: string[]) {
    this.ranges = [
      this.range("layers", "Hidden layers", 1, 64, false),
      this.range("width", "Width", 1, 65536, true, "Units of the widest layer."),
    ];
    this.editor.input.name = "space";
    this.editor.input.rows = 8;
    this.editor.changed = () => {
      this.editor.say("", 0, false);
      this.follow();
    };
    this.expert = h(
      "details",
      { class: "spacetext" },
      h("summary", null, "As text, for experts"),
      h(
        "p",
        { class: "hint" },
        "What is not named is as usual. Ranges: layers 1..4, width 32..512 log, rate 1e-4..1e-2 log. " +
          "Choices: shape brick funnel, optimizer adamw. Own networks: topology 64 relu, 32 tanh, or " +
          "combine 1..3 64 relu tanh for all combinations.",
      ),
      this.editor.node,
    );
    this.node = h("div", { class: "stack" }, this.controls(activations), this.own, this.expert);
  }

  get text(): string {
    return this.editor.text.trim() === "" ? "" : this.editor.text;
  }

  set text(text: string) {
    this.editor.text = text;
    this.expert.open = text.trim() !== "";
    this.follow();
  }

  setError(text: string, line: number): void {
    this.expert.open = true;
    this.editor.say(line > 0 ? `Line ${line}: ${text}` : text, line, text !== "");
    if (line > 0) this.editor.show(line);
    else if (text) this.editor.input.focus();
  }

  clearError(): void {
    this.editor.say("", 0, false);
    for (const { to } of this.ranges) to.setError("");
  }

  // False, and said beside the field: a control has no good value.
  check(): boolean {
    for (const range of this.ranges) {
      const ends = endsOf(range);
      const isGood =
        ends === null ||
        (ends.every(Number.isInteger) &&
          ends[0] >= range.least &&
          ends[1] <= range.most &&
          ends[0] <= ends[1]);
      range.to.setError(
        isGood ? "" : `Whole numbers from ${range.least} to ${range.most}, the smaller one first.`,
      );
      if (isGood) continue;
      range.to.input.focus();
      return false;
    }
    return true;
  }

  private range(
    setting: string,
    label: string,
    least: number,
    most: number,
    log: boolean,
    hint = "",
  ): RangeControl {
    const from = new Field(`${label}, from`, numberInput(`${setting}-from`, least, most), hint);
    const to = new Field(`${label}, to`, numberInput(`${setting}-to`, least, most));
    const control: RangeControl = { setting, log, least, most, from, to };
    for (const field of [from, to]) field.input.addEventListener("change", () => this.takeRange(control));
    return control;
  }

  private controls(activations: string[]): HTMLElement {
    const boxes = h("div", { class: "row choices" });
    for (const name of activations) {
      const id = newId("activation");
      const input = h("input", { type: "checkbox", id, name: `activation-${name}` });
      input.addEventListener("change", () => this.takeActivations());
      this.boxes.set(name, input);
      boxes.append(h("span", { class: "check" }, input, h("label", { for: id }, name)));
    }
    return h(
      "div",
      { class: "stack" },
      h("div", { class: "columns three" }, ...this.ranges.flatMap(({ from, to }) => [from.node, to.node])),
      h(
        "fieldset",
        { class: "plain" },
        h("legend", null, "Activations"),
        boxes,
        h("p", { class: "hint" }, "None ticked: the usual ones. All layers of a network have the same."),
      ),
    );
  }

  private takeRange(range: RangeControl): void {
    if (!this.check()) return;
    const ends = endsOf(range);
    const said = ends === null ? "" : rangeText(...ends, range.log);
    this.editor.text = withSpaceLine(this.editor.text, range.setting, said);
  }

  private takeActivations(): void {
    const ticked = [...this.boxes].filter(([, box]) => box.checked).map(([name]) => name);
    this.editor.text = withSpaceLine(this.editor.text, "activation", ticked.join(" "));
  }

  // The controls show what the text says where they can.
  private follow(): void {
    const { text } = this.editor;
    for (const range of this.ranges) {
      const found = parseRange(spaceLine(text, range.setting));
      range.from.input.value = found ? String(found[0]) : "";
      range.to.input.value = found ? String(found[1]) : "";
    }
    const words = spaceLine(text, "activation").split(/\s+/);
    for (const [name, box] of this.boxes) box.checked = words.includes(name);
    const isOwn = spaceLine(text, "topology") !== "" || spaceLine(text, "combine") !== "";
    this.own.hidden = !isOwn;
    setText(
      this.own,
      isOwn ? "The text names networks of its own: layers, widths and activations are theirs." : "",
    );
  }
}
