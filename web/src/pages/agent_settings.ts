// agent_settings.ts: the parts of the Agent page that say how it learns and how long.

import { minutesText, readSettings, settingsFor, type Setting } from "../agent_spec";
import type { AgentSpec, AlgorithmInfo, EnvInfo, SettingValue } from "../agent_types";
import { Problem } from "../api";
import { h, replace, setText } from "../dom";
import { checkField, Field, selectField, textField } from "../fields";
import { capital } from "../format";

function numberField(
  label: string,
  name: string,
  hint: string,
  more: Record<string, string | number>,
): Field {
  return new Field(label, h("input", { type: "number", name, step: "any", ...more }), hint);
}

// Settings by name, a row each.
class NamedSettings {
  readonly node: HTMLElement;
  private rows: { node: HTMLElement; name: HTMLSelectElement; value: HTMLInputElement }[] = [];
  private known: Setting[] = [];
  private readonly list = h("div", { class: "settings" });
  private readonly error = h("p", { class: "error", role: "alert", hidden: true });

  constructor() {
    const add = h("button", { type: "button", class: "button plain small" }, "Add a setting");
    add.addEventListener("click", () => this.add("", "").focus());
    this.node = h(
      "fieldset",
      { class: "plain" },
      h("legend", null, "Settings by name"),
      h("p", { class: "hint" }, "What is not set suits the environment and the algorithm."),
      this.list,
      this.error,
      h("div", null, add),
    );
  }

  setKnown(known: Setting[]): void {
    this.known = known;
    for (const row of this.rows) this.fillNames(row.name, row.name.value);
  }

  set(given: Record<string, SettingValue>): void {
    this.rows = [];
    this.list.replaceChildren();
    for (const [name, value] of Object.entries(given))
      this.add(name, typeof value === "boolean" ? (value ? "yes" : "no") : String(value));
  }

  // Throws what is wrong with a row.
  read(): Record<string, string> {
    const rows = this.rows.map((row) => ({ name: row.name.value, value: row.value.value }));
    const { settings, wrong } = readSettings(rows);
    if (!wrong) return settings;
    const row = this.rows[wrong.index];
    throw new Problem(0, "bad_request", wrong.text, `settings.${row?.name.value ?? ""}`);
  }

  // field: "settings", or with the name of one behind a dot.
  setError(field: string, text: string): void {
    setText(this.error, text);
    this.error.hidden = text === "";
    const name = field.split(".")[1];
    for (const row of this.rows) {
      const isIt =
        text !== "" && (name === undefined ? text.includes(row.name.value) : row.name.value === name);
      for (const input of [row.name, row.value])
        if (isIt) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
    }
  }

  private add(first: string, text: string): HTMLSelectElement {
    const name = h("select", { "aria-label": "What to set" });
    const value = h("input", {
      type: "text",
      "aria-label": "To what",
      autocomplete: "off",
      spellcheck: "false",
    });
    const says = h("span", { class: "hint" });
    const showSays = (): void => {
      const known = this.known.find((one) => one.name === name.value);
      setText(says, known ? `${capital(known.says)}.` : "");
    };
    this.fillNames(name, first);
    value.value = text;
    showSays();
    name.addEventListener("change", showSays);
    for (const input of [name, value]) input.addEventListener("input", () => this.setError("settings", ""));
    const remove = h("button", { type: "button", class: "icon", "aria-label": "Remove this setting" }, "×");
    const node = h("div", { class: "setting" }, name, value, remove, says);
    const row = { node, name, value };
    remove.addEventListener("click", () => {
      this.rows = this.rows.filter((one) => one !== row);
      node.remove();
    });
    this.rows.push(row);
    this.list.append(node);
    return name;
  }

  // One that the algorithm does not have stays until another is chosen.
  private fillNames(select: HTMLSelectElement, chosen: string): void {
    const names = this.known.map((one) => one.name);
    if (chosen !== "" && !names.includes(chosen)) names.push(chosen);
    replace(
      select,
      h("option", { value: "" }, "choose"),
      ...names.map((name) => h("option", { value: name }, name)),
    );
    select.value = chosen;
  }
}

export class AgentSettings {
  readonly node: HTMLElement;
  private algorithms: AlgorithmInfo[] = [];
  private env: EnvInfo | null = null;
  private wanted: string | null = null; // an algorithm, of an earlier job
  private readonly algorithm = selectField("Algorithm", "algorithm", []);
  private readonly minutes = numberField("Minutes", "minutes", "Empty: no limit in time.", {
    min: 0.1,
    value: 10,
  });
  private readonly seed = numberField("Seed", "seed", "The same seed begins the same way.", {
    min: 0,
    step: 1,
    value: 1,
  });
  private readonly name = textField("Name", "name", "Empty: called after the environment.");
  private readonly steps = numberField("Steps at most", "steps", "Empty: as is usual for the algorithm.", {
    min: 1,
    step: 1,
  });
  private readonly workersMin = numberField("Machines at least", "workers_min", "", {
    min: 1,
    step: 1,
    value: 1,
  });
  private readonly workersMax = numberField("Machines at most", "workers_max", "Empty: all that come.", {
    min: 1,
    step: 1,
  });
  private readonly body = new Field(
    "Layers of the network",
    h("textarea", {
      name: "body",
      rows: 3,
      spellcheck: "false",
      autocomplete: "off",
      placeholder: "dense 64 tanh\ndense 64 tanh",
    }),
    "One a line, without input and output; one such as “gru 64” remembers. Empty: as suits the environment.",
  );
  private readonly untilSolved = checkField(
    "End when it is solved",
    "until_solved",
    "Else it continues to the end.",
  );
  private readonly exact = checkField(
    "Exact",
    "exact",
    "Rounds as on one machine: the same agent whoever plays, but machines wait for each other.",
  );
  private readonly isPrivate = checkField(
    "Private",
    "private",
    "Only people with an invitation to this agent see it and may help.",
  );
  private readonly named = new NamedSettings();
  private readonly advanced: HTMLDetailsElement;
  private readonly fields: Record<string, Field> = {
    algorithm: this.algorithm,
    seconds: this.minutes,
    seed: this.seed,
    name: this.name,
    steps: this.steps,
    workers_min: this.workersMin,
    workers_max: this.workersMax,
    body: this.body,
  };

  constructor() {
    this.untilSolved.input.checked = true;
    this.algorithm.input.addEventListener("change", () => this.showAlgorithm());
    this.advanced = h(
      "details",
      { class: "advanced" },
      h("summary", null, "Advanced"),
      h(
        "div",
        { class: "stack" },
        h("div", { class: "columns three" }, this.steps.node, this.workersMin.node, this.workersMax.node),
        h("div", { class: "columns" }, this.untilSolved.node, this.exact.node),
        this.named.node,
        this.body.node,
      ),
    );
    this.node = h(
      "div",
      { class: "stack" },
      h(
        "div",
        { class: "columns three" },
        this.algorithm.node,
        this.minutes.node,
        this.seed.node,
        this.name.node,
      ),
      this.isPrivate.node,
      this.advanced,
    );
  }

  setAlgorithms(algorithms: AlgorithmInfo[]): void {
    this.algorithms = algorithms;
  }

  // What acts there, the usual one first chosen.
  setEnv(env: EnvInfo): void {
    const before =
      this.wanted ?? (this.env?.usual === this.algorithm.input.value ? null : this.algorithm.input.value);
    this.wanted = null;
    this.env = env;
    replace(
      this.algorithm.input,
      ...env.algorithms.map((name) =>
        h("option", { value: name }, name === env.usual ? `${name} (usual)` : name),
      ),
    );
    this.algorithm.input.value = before && env.algorithms.includes(before) ? before : env.usual;
    (this.name.input as HTMLInputElement).placeholder = env.name;
    this.showAlgorithm();
  }

  copy(spec: Partial<AgentSpec>): void {
    const text = (n: number | undefined): string => (n ? String(n) : "");
    this.wanted = spec.algorithm ?? null;
    this.minutes.input.value = minutesText(spec.seconds);
    this.seed.input.value = String(spec.seed ?? 1);
    this.name.input.value = spec.name ?? "";
    this.steps.input.value = text(spec.steps);
    this.workersMin.input.value = String(spec.workers_min ?? 1);
    this.workersMax.input.value = (spec.workers_max ?? 0) < 1000 ? text(spec.workers_max) : "";
    this.untilSolved.input.checked = spec.until_solved ?? true;
    this.exact.input.checked = spec.exact ?? false;
    this.isPrivate.input.checked = spec.private ?? false;
    this.body.input.value = spec.body ?? "";
    this.named.set(spec.settings ?? {});
    const isSaid = Object.keys(spec.settings ?? {}).length > 0 || spec.body || spec.steps || spec.exact;
    if (isSaid || spec.until_solved === false) this.advanced.open = true;
  }

  // Throws what is wrong with a field.
  spec(): Partial<AgentSpec> {
    const spec: Partial<AgentSpec> = {
      algorithm: this.algorithm.input.value,
      seed: this.number("seed") ?? 1,
      seconds: (this.number("seconds") ?? 0) * 60,
      until_solved: this.untilSolved.input.checked,
      exact: this.exact.input.checked,
      private: this.isPrivate.input.checked,
      workers_min: this.number("workers_min") ?? 1,
    };
    const steps = this.number("steps");
    if (steps !== null) spec.steps = steps;
    const most = this.number("workers_max");
    if (most !== null) spec.workers_max = most;
    const settings = this.named.read();
    if (Object.keys(settings).length > 0) spec.settings = settings;
    const body = this.body.input.value.trim();
    if (body) spec.body = body;
    spec.name = this.name.input.value.trim() || (this.env?.name ?? "");
    return spec;
  }

  setError(field: string, text: string): boolean {
    if (field === "settings" || field.startsWith("settings.")) {
      this.named.setError(field, text);
      this.advanced.open = true;
      return true;
    }
    const at = this.fields[field];
    at?.setError(text);
    if (at && this.advanced.contains(at.node)) this.advanced.open = true;
    return at !== undefined;
  }

  clearErrors(): void {
    for (const field of Object.values(this.fields)) field.setError("");
    this.named.setError("settings", "");
  }

  private showAlgorithm(): void {
    const chosen = this.algorithm.input.value;
    const says = this.algorithms.find((one) => one.name === chosen)?.says;
    this.algorithm.setHint(says ? `${capital(says)}.` : "");
    this.named.setKnown(settingsFor(chosen));
  }

  private number(name: string): number | null {
    const input = (this.fields[name] as Field).input as HTMLInputElement;
    if (input.validity.badInput) throw new Problem(0, "bad_request", "must be a number", name);
    if (input.value === "") return null;
    if (!input.validity.valid) throw new Problem(0, "bad_request", input.validationMessage, name);
    return Number(input.value);
  }
}
