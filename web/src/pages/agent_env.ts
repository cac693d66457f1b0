// agent_env.ts: the part of the Agent page that chooses the environment: each with a picture and what is to
// be done in it.

import { drawPicture, palette } from "../agent_draw";
import { envFacts } from "../agent_spec";
import type { EnvInfo } from "../agent_types";
import { h, newId, replace, setText, type Child } from "../dom";
import { capital } from "../format";
import { onTheme } from "../theme";

interface Choice {
  env: EnvInfo;
  input: HTMLInputElement;
  canvas: HTMLCanvasElement;
}

// A long name may be broken between its words, and not within one.
function nameParts(name: string): Child[] {
  return name.split(/(?=[A-Z][a-z])|(?=-v\d)/).flatMap((word, i): Child[] => [i > 0 && h("wbr"), word]);
}

export class EnvPart {
  readonly node: HTMLElement;
  changed: (env: EnvInfo) => void = () => undefined;
  private choices: Choice[] = [];
  private readonly list = h("div", { class: "envs" });
  private readonly error = h("p", { class: "error", role: "alert", hidden: true, id: newId("env-error") });
  private readonly sizes = new ResizeObserver(() => this.draw());
  private readonly endTheme = onTheme(() => this.draw());

  constructor() {
    this.node = h(
      "fieldset",
      { class: "plain" },
      h("legend", { class: "away" }, "Environment"),
      this.list,
      this.error,
    );
    this.sizes.observe(this.list);
  }

  set(envs: EnvInfo[], wanted: string | null): void {
    this.choices = envs.map((env) => this.choice(env));
    replace(this.list, ...this.choices.map((one) => one.input.parentElement));
    const first = this.choices.find((one) => one.env.name === wanted) ?? this.choices[0];
    if (first) {
      first.input.checked = true;
      this.changed(first.env);
    }
    this.draw();
  }

  get env(): EnvInfo | null {
    return this.choices.find((one) => one.input.checked)?.env ?? null;
  }

  setError(text: string): void {
    setText(this.error, text);
    this.error.hidden = text === "";
    for (const { input } of this.choices)
      if (text) input.setAttribute("aria-describedby", this.error.id);
      else input.removeAttribute("aria-describedby");
  }

  close(): void {
    this.sizes.disconnect();
    this.endTheme();
  }

  private choice(env: EnvInfo): Choice {
    const input = h("input", { type: "radio", name: "env", value: env.name, class: "away" });
    const canvas = h("canvas", { "aria-hidden": "true", hidden: !env.picture });
    input.addEventListener("change", () => {
      this.setError("");
      this.changed(env);
    });
    h(
      "label",
      { class: "env" },
      input,
      h(
        "span",
        { class: env.picture ? "envbox" : "envbox bare" },
        canvas,
        h("span", { class: "envname" }, ...nameParts(env.name)),
        h("span", { class: "envsays" }, `${capital(env.says)}.`),
        h("span", { class: "hint" }, capital(envFacts(env))),
      ),
    );
    return { env, input, canvas };
  }

  private draw(): void {
    const inks = palette();
    for (const { env, canvas } of this.choices)
      if (env.picture) drawPicture(canvas, env.picture.view, env.picture.shapes, inks);
  }
}
