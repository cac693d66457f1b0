// fields.ts: parts of forms: a label, what is entered, a hint and the place of an error, tied together.

import { h, newId, setText, type Child } from "./dom";
import { nextValue, positions, readNumber, type Scale } from "./scales";

// The error belongs beside the field that it names.
export class Field {
  readonly node: HTMLElement;
  private readonly error = h("p", { class: "error", role: "alert", hidden: true });
  private readonly hint: HTMLElement;
  private readonly label: HTMLElement;

  constructor(
    label: string,
    readonly input: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement,
    hint = "",
    ...more: Child[]
  ) {
    const id = input.id || newId("field");
    input.id = id;
    this.hint = h("p", { class: "hint", id: `${id}-hint`, hidden: hint === "" }, hint);
    this.error.id = `${id}-error`;
    input.setAttribute("aria-describedby", `${id}-hint ${id}-error`);
    this.label = h("label", { for: id }, label);
    this.node = h("div", { class: "field" }, this.label, input, ...more, this.hint, this.error);
  }

  setLabel(text: string): void {
    setText(this.label, text);
  }

  setError(text: string): void {
    setText(this.error, text);
    this.error.hidden = text === "";
    if (text) this.input.setAttribute("aria-invalid", "true");
    else this.input.removeAttribute("aria-invalid");
  }

  setHint(text: string): void {
    setText(this.hint, text);
    this.hint.hidden = text === "";
  }
}

export function textField(label: string, name: string, hint = "", more: Record<string, string> = {}): Field {
  return new Field(
    label,
    h("input", { type: "text", name, autocomplete: "off", spellcheck: "false", ...more }),
    hint,
  );
}

export function selectField(label: string, name: string, options: [string, string][], hint = ""): Field {
  const select = h("select", { name });
  for (const [value, text] of options) select.append(h("option", { value }, text));
  return new Field(label, select, hint);
}

export function checkField(
  label: string,
  name: string,
  hint: string,
): { node: HTMLElement; input: HTMLInputElement } {
  const id = newId("check");
  const input = h("input", { type: "checkbox", id, name });
  const node = h(
    "div",
    { class: "check" },
    input,
    h("label", { for: id }, label, hint && h("span", { class: "hint" }, hint)),
  );
  return { node, input };
}

// A slider and a box for the number, which follow one another. Until somebody moves it, it shows what is
// proposed.
export class SliderField {
  readonly node: HTMLElement;
  touched = false;
  wrong = ""; // why the text in the box is no value; it stays there until it is mended
  changed: () => void = () => undefined;
  private readonly slider: HTMLInputElement;
  private readonly field: Field;
  private readonly box: HTMLInputElement;
  private readonly back: HTMLButtonElement;
  private proposed: number;
  private current: number;

  constructor(
    label: string,
    name: string,
    private readonly scale: Scale,
    first: number,
    hint = "",
  ) {
    this.current = this.proposed = first;
    this.slider = h("input", {
      type: "range",
      min: 0,
      max: positions,
      step: 1,
      "aria-label": `${label}, slider`,
    });
    this.slider.dataset["name"] = name;
    this.box = h("input", {
      type: "text",
      inputmode: scale.whole ? "numeric" : "decimal",
      name,
      autocomplete: "off",
    });
    this.back = h("button", {
      type: "button",
      class: "link small",
      hidden: true,
      onclick: () => this.reset(),
    });
    this.field = new Field(label, this.box, hint, this.slider);
    this.node = this.field.node;
    this.node.classList.add("slider");
    this.node.append(this.back);
    this.slider.addEventListener("input", () =>
      this.take(scale.toValue(Number(this.slider.value)), this.slider),
    );
    this.slider.addEventListener("keydown", (event) => this.press(event));
    this.box.addEventListener("input", () => {
      const read = readNumber(this.box.value, scale);
      if (typeof read === "number") this.take(read, this.box);
      else this.field.setError((this.wrong = read));
    });
    for (const input of [this.box, this.slider]) input.addEventListener("change", () => this.show());
    this.show();
  }

  get value(): number {
    return this.current;
  }

  // What the model's text says, say.
  propose(value: number, where: string): void {
    this.proposed = value;
    this.back.textContent = `${where} ${value}: use that`;
    if (!this.touched) this.current = value;
    this.show();
  }

  set(value: number): void {
    this.current = value;
    this.wrong = "";
    this.touched = true;
    this.show();
  }

  setError(text: string): void {
    this.field.setError(text || this.wrong);
  }

  // What it was entered with is left as it is: a slider that jumps to the next whole number cannot be
  // dragged.
  private take(value: number, by: HTMLInputElement | null): void {
    this.current = value;
    this.wrong = "";
    this.touched = true;
    this.show(by);
    this.changed();
  }

  // An arrow key goes to the next value, which may be many positions away.
  private press(event: KeyboardEvent): void {
    const up = event.key === "ArrowRight" || event.key === "ArrowUp";
    if (!up && event.key !== "ArrowLeft" && event.key !== "ArrowDown") return;
    event.preventDefault();
    this.take(nextValue(this.scale, this.current, up ? 1 : -1), null);
  }

  private reset(): void {
    this.current = this.proposed;
    this.wrong = "";
    this.touched = false;
    this.show();
    this.changed();
    this.box.focus();
  }

  private show(but: HTMLInputElement | null = null): void {
    this.field.setError(this.wrong);
    if (but !== this.box && !this.wrong) this.box.value = String(this.current);
    const position = this.scale.toPosition(this.current);
    if (but !== this.slider) this.slider.value = String(position);
    this.slider.style.setProperty("--filled", `${position / 10}%`);
    this.slider.setAttribute("aria-valuetext", String(this.current));
    const isAsProposed = !this.wrong && (!this.touched || this.current === this.proposed);
    this.back.hidden = isAsProposed || this.back.textContent === "";
  }
}
