// signin.ts: the screen for who comes without a token, or with one that the server does not take.

import { h } from "../dom";
import { Field } from "../fields";
import { parsePasted } from "../link";
import { mark } from "../parts";
import { signIn } from "../session";

export function signInScreen(hadToken: boolean, done: () => void): HTMLElement {
  const input = h("input", {
    type: "text",
    name: "link",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "https://…/#t=…",
  });
  const field = new Field("Your invitation link", input);
  const stay = h("input", { type: "checkbox", id: "stay" });
  const form = h(
    "form",
    { class: "card signin" },
    mark(),
    h("h1", { tabindex: -1 }, hadToken ? "This invitation no longer works" : "Welcome to Shoal"),
    h(
      "p",
      null,
      hadToken
        ? "It has expired or was taken back. Ask whoever gave it to you for a new link."
        : "Here people train neural networks together. To come in you need an invitation link; " +
            "ask whoever runs this server for one.",
    ),
    field.node,
    h("div", { class: "check" }, stay, h("label", { for: "stay" }, "Stay signed in on this device")),
    h("button", { class: "button main", type: "submit" }, "Come in"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const invitation = parsePasted(input.value);
    if (!invitation) {
      field.setError("This is not an invitation: a link ends with #t= and 22 characters.");
      input.focus();
      return;
    }
    signIn(invitation, stay.checked);
    done();
  });
  return h("main", { id: "main", class: "centre" }, form);
}
