// editor.ts: a plain text editor with line numbers, which can mark one line as wrong.

import { h, newId, setText } from "./dom";

export class Editor {
  readonly node: HTMLElement;
  readonly input: HTMLTextAreaElement;
  changed: () => void = () => undefined;
  private readonly numbers = h("div", { class: "numbers", "aria-hidden": "true" });
  private readonly mark = h("div", { class: "mark", hidden: true });
  private readonly message = h("p", { class: "verdict", role: "status" });
  private line = 0;

  constructor(label: string) {
    const id = newId("editor");
    this.message.id = `${id}-message`;
    this.input = h("textarea", {
      id,
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      wrap: "off",
      rows: 18,
      name: "model",
      "aria-describedby": this.message.id,
    });
    this.input.addEventListener("input", () => {
      this.number();
      this.changed();
    });
    this.input.addEventListener("scroll", () => this.follow());
    this.node = h(
      "div",
      { class: "field" },
      h("label", { for: id }, label),
      h("div", { class: "editor" }, this.numbers, h("div", { class: "paper" }, this.mark, this.input)),
      this.message,
    );
    this.number();
  }

  get text(): string {
    return this.input.value;
  }

  set text(text: string) {
    this.input.value = text;
    this.number();
    this.input.scrollTop = 0;
  }

  // Line 0: nothing is wrong.
  say(text: string, line: number, isError: boolean): void {
    setText(this.message, text);
    this.message.classList.toggle("bad", isError);
    this.line = line;
    if (isError) this.input.setAttribute("aria-invalid", "true");
    else this.input.removeAttribute("aria-invalid");
    this.number();
  }

  // Puts the caret where the mistake is.
  showMistake(): void {
    if (this.line > 0) this.show(this.line);
    else this.input.focus();
  }

  // Puts the caret into a line, counted from 1.
  show(line: number): void {
    const before =
      this.text
        .split("\n")
        .slice(0, line - 1)
        .join("\n").length + (line > 1 ? 1 : 0);
    const end = this.text.indexOf("\n", before);
    this.input.focus();
    this.input.setSelectionRange(before, end < 0 ? this.text.length : end);
  }

  private number(): void {
    const count = this.text.split("\n").length;
    if (this.numbers.childElementCount !== count) {
      this.numbers.replaceChildren();
      for (let i = 1; i <= count; i++) this.numbers.append(h("div", null, String(i)));
    }
    [...this.numbers.children].forEach((element, i) => element.classList.toggle("bad", i + 1 === this.line));
    this.follow();
  }

  private follow(): void {
    const top = this.input.scrollTop;
    this.numbers.style.transform = `translateY(${-top}px)`;
    this.mark.hidden = this.line === 0;
    this.mark.style.transform = `translateY(calc(${this.line - 1} * var(--line-height) - ${top}px))`;
  }
}
