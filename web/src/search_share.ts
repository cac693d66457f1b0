// search_share.ts: the key to the results of a search, or to an agent: an invitation for one who may look and
// nothing else.

import { post, textOf } from "./api";
import { h, replace } from "./dom";
import { showLink } from "./invite";
import { linkToJob } from "./link";
import type { NewToken, ServerInfo } from "./types";
import { Field, textField } from "./fields";

const whatItShows = {
  search: "sees this search and its results as they come, may download them and predict with them",
  agent: "sees this agent learn and play, and may download it",
};

export function shareForm(
  server: ServerInfo,
  job: number,
  what: keyof typeof whatItShows = "search",
): HTMLElement {
  const name = textField("For whom", "key-name", "To tell keys apart.", {
    placeholder: "e.g. the team",
  });
  const days = new Field(
    "Days that it works",
    h("input", { type: "number", name: "key-days", min: 1, max: 3650, value: 30 }),
    "Empty: until it is taken back.",
  );
  const submit = h("button", { class: "button main", type: "submit" }, "Make a key");
  const failure = h("p", { class: "error", role: "alert", hidden: true });
  const result = h("div", { "aria-live": "polite" });
  const form = h(
    "form",
    { class: "stack" },
    h("p", { class: "muted" }, `Whoever has the key ${whatItShows[what]}, and can change nothing.`),
    h("div", { class: "columns three" }, name.node, days.node),
    h("div", { class: "row" }, submit),
    failure,
    result,
  );

  async function make(): Promise<void> {
    submit.disabled = true;
    failure.hidden = true;
    try {
      const token = await post<NewToken>("/tokens", {
        role: "viewer",
        name: name.input.value.trim() || `key to ${what} ${job}`,
        job,
        ...(days.input.value === "" ? {} : { days: Number(days.input.value) }),
      });
      replace(
        result,
        h("p", { class: "good" }, "Copy it now: it is shown only this once."),
        showLink(linkToJob(location.origin, token.token, server.fingerprint, token.link, job), false),
      );
    } catch (thrown) {
      failure.textContent = textOf(thrown);
      failure.hidden = false;
    } finally {
      submit.disabled = false;
    }
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void make();
  });
  return form;
}
