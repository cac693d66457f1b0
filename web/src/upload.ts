// upload.ts: brings files of the user's to the server and makes them a data set.

import { Problem, post, textOf, upload } from "./api";
import { h, newId, replace, setText } from "./dom";
import { selectField, textField, type Field } from "./fields";
import { bytes, fileName, percent } from "./format";
import { Bar } from "./parts";
import type { Dataset } from "./types";

const kinds: [string, string][] = [
  ["csv", "csv: a table"],
  ["idx", "idx: images, as MNIST"],
  ["cifar", "cifar: images, as CIFAR-10"],
  ["text", "text: words"],
  ["chars", "chars: characters"],
];

// What the files are, going by their names. Pure.
export function guessKind(names: string[]): string {
  const all = names.map((name) => name.toLowerCase().replace(/\.gz$/, ""));
  if (all.some((name) => name.endsWith(".csv"))) return "csv";
  if (all.some((name) => name.endsWith(".bin"))) return "cifar";
  if (all.some((name) => /idx[0-9]|ubyte/.test(name))) return "idx";
  return "text";
}

// Image files become a data set by the command, which fits them to a model. Pure.
export function areImages(names: string[]): boolean {
  return names.some((name) => /\.(png|jpe?g)$/i.test(name));
}

// A name for the set, from that of a file. Pure.
export function guessName(file: string): string {
  const name = file
    .toLowerCase()
    .replace(/\.(gz|zip)$/, "")
    .replace(/\.[a-z0-9]+$/, "");
  return (
    name
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-+|-+$/g, "")
      .slice(0, 60) || "data"
  );
}

// What a file is called on the server, which takes letters, digits, dots, hyphens and underscores. Pure.
export function sentName(file: string): string {
  return fileName(file)
    .slice(-100)
    .replace(/^[-.]+/, "");
}

export class Uploader {
  readonly node: HTMLElement;
  private files: File[] = [];
  private abort: AbortController | null = null;
  private readonly list = h("ul", { class: "files" });
  private readonly name: Field;
  private readonly kind: Field;
  private readonly target: Field;
  private readonly start: HTMLButtonElement;
  private readonly stop: HTMLButtonElement;
  private readonly failure = h("p", { class: "error", role: "alert", hidden: true });
  private readonly status = h("p", { class: "muted small", role: "status" });

  // only: the one kind that is wanted here; "": the user says it.
  constructor(
    private readonly done: (set: Dataset) => void,
    private readonly only = "",
  ) {
    this.name = textField("Name of the data set", "dataset-name", "Letters, digits and hyphens.");
    this.kind = selectField("What the files are", "kind", kinds);
    this.target = textField("Target column", "target", "Empty: the last one.");
    this.start = h(
      "button",
      { type: "button", class: "button main", disabled: true, onclick: () => void this.run() },
      "Upload",
    );
    this.stop = h(
      "button",
      { type: "button", class: "button plain", hidden: true, onclick: () => this.abort?.abort() },
      "Stop the upload",
    );
    this.kind.input.addEventListener(
      "change",
      () => (this.target.node.hidden = this.kind.input.value !== "csv"),
    );
    if (only) this.kind.node.hidden = this.target.node.hidden = true;
    this.node = h(
      "div",
      { class: "stack uploader" },
      this.dropZone(),
      this.list,
      h("div", { class: "columns three" }, this.name.node, this.kind.node, this.target.node),
      this.failure,
      h("div", { class: "row" }, this.start, this.stop, this.status),
    );
  }

  private dropZone(): HTMLElement {
    const id = newId("files");
    const input = h("input", { type: "file", id, multiple: true, class: "away" });
    const zone = h(
      "label",
      { for: id, class: "drop" },
      h("strong", null, "Drop files here"),
      h("span", { class: "muted" }, "or press to choose them"),
    );
    input.addEventListener("change", () => this.take([...(input.files ?? [])]));
    zone.addEventListener("dragover", (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      zone.classList.remove("over");
      this.take([...(event.dataTransfer?.files ?? [])]);
    });
    return h("div", null, input, zone);
  }

  private take(files: File[]): void {
    if (files.length === 0 || this.abort) return;
    this.files = files;
    this.failure.hidden = true;
    this.name.input.value ||= guessName((files[0] as File).name);
    this.kind.input.value = guessKind(files.map((file) => file.name));
    if (!this.only) this.kind.input.dispatchEvent(new Event("change"));
    this.start.disabled = areImages(files.map((file) => file.name));
    this.failure.textContent =
      "PNG and JPEG files are sent with the command shoal host MODEL.net --data FOLDER, which fits them to the model: " +
      "FOLDER has a subfolder for each class.";
    this.failure.hidden = !this.start.disabled;
    setText(this.status, "");
    replace(
      this.list,
      ...files.map((file) =>
        h("li", null, h("span", null, file.name), h("span", { class: "muted" }, bytes(file.size))),
      ),
    );
  }

  private say(thrown: unknown): void {
    const named = thrown instanceof Problem ? thrown.field : null;
    if (named === "kind") this.kind.setError(textOf(thrown));
    else if (named === "name") this.name.setError(textOf(thrown));
    else if (named === "target") this.target.setError(textOf(thrown));
    else {
      const line =
        thrown instanceof Problem && thrown.line !== null
          ? `Line ${thrown.line}${thrown.column === null ? "" : `, column ${thrown.column}`}: `
          : "";
      this.failure.textContent = line + textOf(thrown);
      this.failure.hidden = false;
    }
    setText(this.status, "");
  }

  private async run(): Promise<void> {
    for (const field of [this.name, this.kind, this.target]) field.setError("");
    this.failure.hidden = true;
    const name = this.name.input.value.trim();
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name)) {
      this.name.setError("Letters, digits, dots and hyphens only.");
      return;
    }
    this.abort = new AbortController();
    this.start.disabled = true;
    this.stop.hidden = false;
    try {
      await this.send(name, this.abort.signal);
    } catch (thrown) {
      this.say(thrown);
    } finally {
      this.abort = null;
      this.start.disabled = this.files.length === 0;
      this.stop.hidden = true;
    }
  }

  private async send(name: string, signal: AbortSignal): Promise<void> {
    const path = `/datasets/${encodeURIComponent(name)}`;
    for (const [i, file] of this.files.entries()) {
      const bar = new Bar();
      const figure = h("span", { class: "figure" });
      const row = this.list.children[i] as HTMLElement;
      row.querySelector(".progress")?.remove();
      row.append(h("span", { class: "progress" }, bar.node, figure));
      setText(this.status, `Sending ${file.name}`);
      await upload(
        `${path}/files/${sentName(file.name)}`,
        file,
        (part) => {
          bar.set(part);
          setText(figure, percent(part));
        },
        signal,
      );
      bar.set(1);
      setText(figure, "sent");
    }
    setText(this.status, "Checking the files");
    const kind = this.only || this.kind.input.value;
    const target = this.target.input.value.trim();
    const set = await post<Dataset>(path, { kind, ...(kind === "csv" && target ? { target } : {}) });
    setText(this.status, "");
    this.files = [];
    replace(this.list);
    this.name.input.value = "";
    this.done(set);
  }
}
