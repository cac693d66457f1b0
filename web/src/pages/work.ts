// work.ts: how to lend a machine.

import { h } from "../dom";
import { inviteForm, openLink, showLink } from "../invite";
import { linkOf } from "../link";
import type { Frame, Page } from "../page";
import { card } from "../parts";
import { invitation } from "../session";
import { may, type ServerInfo } from "../types";

function howTo(server: ServerInfo): HTMLElement {
  const own = invitation();
  // Who needs no token to lend a machine gets the plain address.
  if (server.open && may(server.open, "volunteer")) return showLink(openLink(server), true);
  // The link of a host or admin is theirs alone: it must not end up in a code that others scan.
  if (own && server.role === "volunteer")
    return showLink(linkOf(location.origin, own.token, own.fingerprint), true);
  if (may(server.role, "host")) {
    return h(
      "p",
      null,
      "Make an invitation below: it gives you the command and a code to scan. Your own link is not shown here, " +
        "since it may do more than lend a machine.",
    );
  }
  return h(
    "p",
    null,
    "Your invitation is for looking only. Ask whoever gave it to you for one for volunteers.",
  );
}

// Options such as --cores are set as code, which keeps them in one line.
function list(items: string[]): HTMLElement {
  const element = h("ul", { class: "points" });
  for (const item of items) {
    const parts = item.split(/(--[a-z]+)/);
    const options = parts.map((text) =>
      text.startsWith("--") ? h("code", { class: "option" }, text) : text,
    );
    element.append(h("li", null, ...options));
  }
  return element;
}

export function workPage(frame: Frame): Page {
  const { server } = frame;
  return {
    title: "Work",
    node: h(
      "div",
      { class: "page narrow" },
      h("h1", { tabindex: -1 }, "Lend a machine"),
      h(
        "p",
        { class: "lead" },
        "One command, and this machine helps to train networks until you press Ctrl-C.",
      ),
      card("How", howTo(server)),
      may(server.role, "host") &&
        card(
          "Invite others",
          server.role === "host"
            ? h("p", { class: "hint" }, "Invitations to one of your jobs are made on that job's page.")
            : inviteForm(server, null, () => undefined),
        ),
      h(
        "div",
        { class: "columns" },
        card(
          "What it does there",
          list([
            "Computes with the lowest priority, within the cores (--cores) and memory (--memory) you allow.",
            "Fetches the training data and the weights that its share of the work needs.",
            "Shares data with others of the same job: they may connect to a port of this machine (--no-peers: nobody can).",
            "Pauses while other programs need the machine, on battery, and outside your hours (--hours).",
            "Says at any time what it computes and for whom.",
            "Leaves in order on Ctrl-C; nothing is lost, others take over.",
          ]),
        ),
        card(
          "What it does not do",
          list([
            "It runs no code of others: networks and work come as data, which it checks first.",
            "It reads none of your files and writes only to its cache: where the system can, it is locked in.",
            "It lets nobody in but those whom the server names to it, and gives them that job's data only.",
            "It starts nothing at boot, and leaves no program behind.",
          ]),
        ),
      ),
    ),
    close: () => undefined,
  };
}
