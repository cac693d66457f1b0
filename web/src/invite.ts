// invite.ts: how to come in: the command, the link, its QR code; and the form that makes invitations.

import { Problem, post, saveText, textOf } from "./api";
import { h, replace, setText } from "./dom";
import { Field, selectField, textField } from "./fields";
import { capital, count, counted, fileName, shellWord } from "./format";
import { invitationsCsv, invitationsMax } from "./invitations";
import { isLoopback, linkOf, linkToShare } from "./link";
import { button, copyable } from "./parts";
import { qr } from "./qr";
import { may, type NewToken, type Role, type ServerInfo } from "./types";

export const roleTexts: Record<Role, string> = {
  metrics: "may read /metrics, for Prometheus, and nothing else",
  viewer: "may look",
  volunteer: "may look and lend a machine",
  host: "may also train networks of their own",
  admin: "may do everything",
};

function roleHint(role: Role): string {
  const text = roleTexts[role];
  return `${capital(text)}.`;
}

// The command and the code for one link. `command` false: for looking only.
export function showLink(link: string, command: boolean): HTMLElement {
  const local = isLoopback(new URL(link).origin);
  return h(
    "div",
    { class: local ? "share local" : "share" },
    h(
      "div",
      { class: "sharetext" },
      command && h("p", { class: "muted small" }, "In a terminal of the machine that is to help:"),
      command && copyable(`shoal work ${shellWord(link)}`, "The command"),
      h(
        "p",
        { class: "muted small" },
        command ? "Or the link alone, for a browser:" : "The link, for a browser:",
      ),
      copyable(link, "The link"),
      local &&
        h(
          "p",
          { class: "hint" },
          "This address works on this machine only. For others, start the server with --listen and an address " +
            "that they can reach.",
        ),
    ),
    // Another machine's 127.0.0.1 is that machine: there is nothing to scan.
    !local &&
      h(
        "figure",
        null,
        qr(link, "QR code of the link"),
        h("figcaption", { class: "muted small" }, "Scan it with a phone"),
      ),
  );
}

export function openLink(server: ServerInfo): string {
  return linkOf(location.origin, null, server.fingerprint);
}

// For who may make invitations: to one job, or to all when `job` is null.
export function inviteForm(server: ServerInfo, job: number | null, made: () => void): HTMLElement {
  const roles: Role[] =
    may(server.role, "admin") && job === null
      ? ["volunteer", "viewer", "host", "admin", "metrics"]
      : ["volunteer", "viewer"];
  const role = selectField(
    "Who it is for",
    "role",
    roles.map((name) => [name, name]),
    roleHint(roles[0] as Role),
  );
  role.input.addEventListener("change", () => role.setHint(roleHint(role.input.value as Role)));
  const name = textField("Name, to tell invitations apart", "name", "", {
    placeholder: "e.g. the lab's desktops",
  });
  const days = new Field(
    "Days that it works",
    h("input", { type: "number", name: "days", min: 1, max: 3650, value: 30 }),
    "Empty: no end date. It can be taken back at any time.",
  );
  const many = new Field(
    "How many",
    h("input", { type: "number", name: "count", min: 1, max: invitationsMax, step: 1, value: 1 }),
    "More than one come as a file, with numbers behind the name.",
  );
  const submit = h("button", { class: "button main", type: "submit" }, "Make an invitation");
  const result = h("div", { "aria-live": "polite" });
  const failure = h("p", { class: "error", role: "alert", hidden: true });
  const fields: Record<string, Field> = { role, name, days, count: many };
  const form = h(
    "form",
    { class: "stack" },
    h("div", { class: "columns three" }, role.node, name.node, days.node, many.node),
    h("div", { class: "row" }, submit),
    failure,
    result,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void send();
  });
  const howMany = (): number => Number(many.input.value || 1);
  many.input.addEventListener("input", () => {
    setText(submit, howMany() > 1 ? `Make ${count(howMany())} invitations` : "Make an invitation");
  });
  const link = (token: NewToken): string =>
    linkToShare(location.origin, token.token, server.fingerprint, token.link);

  function showMany(tokens: NewToken[]): void {
    const save = (): void =>
      saveText(
        invitationsCsv(tokens, link),
        `invitations-${fileName(name.input.value.trim() || "shoal")}.csv`,
      );
    const press = button("Download the invitations", "main", save);
    replace(
      result,
      h(
        "p",
        { class: "good" },
        `${counted(tokens.length, "invitation")}, ${tokens[0]?.name ?? ""} to ${tokens[tokens.length - 1]?.name ?? ""}: ` +
          "a table with a link and a command each. Download it now: the links are not shown again.",
      ),
      h("div", { class: "row" }, press),
    );
    press.focus();
  }

  async function send(): Promise<void> {
    submit.disabled = true;
    failure.hidden = true;
    for (const field of Object.values(fields)) field.setError("");
    const chosen = role.input.value as Role;
    try {
      const wanted = {
        role: chosen,
        name: name.input.value.trim() || chosen,
        ...(job === null ? {} : { job }),
        ...(days.input.value === "" ? {} : { days: Number(days.input.value) }),
      };
      if (howMany() !== 1) {
        showMany((await post<{ tokens: NewToken[] }>("/tokens", { ...wanted, count: howMany() })).tokens);
        made();
        return;
      }
      const token = await post<NewToken>("/tokens", wanted);
      replace(
        result,
        h("p", { class: "good" }, "Copy it now: it is shown only this once."),
        chosen === "metrics"
          ? copyable(token.token, "The token, for Prometheus")
          : showLink(link(token), chosen !== "viewer"),
      );
      made();
    } catch (thrown) {
      const named = thrown instanceof Problem && thrown.field ? fields[thrown.field] : undefined;
      if (named) named.setError(textOf(thrown));
      else {
        failure.textContent = textOf(thrown);
        failure.hidden = false;
      }
    } finally {
      submit.disabled = false;
    }
  }
  return form;
}
