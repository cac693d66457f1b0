// access.ts: for admins: who has been invited, and what was done.

import { get, remove, textOf } from "../api";
import { h, setText } from "../dom";
import { date, none, when } from "../format";
import { inviteForm, roleTexts } from "../invite";
import type { Frame, Page } from "../page";
import { ask, busy, button, card, notice } from "../parts";
import { Table, textColumn } from "../table";
import { may, type AuditEntry, type TokenInfo } from "../types";

const rowHeight = 44;

// Two lines at most, so that all rows are of one height.
function fillWhat(cell: HTMLTableCellElement, entry: AuditEntry): void {
  if (!cell.firstElementChild) cell.append(h("div", { class: "twolines" }));
  setText(cell.firstElementChild as Element, entry.what);
  cell.title = entry.what;
}

export function accessPage(frame: Frame): Page {
  if (!may(frame.server.role, "admin")) {
    return {
      title: "Access",
      node: h(
        "div",
        { class: "page narrow" },
        h("h1", { tabindex: -1 }, "Access"),
        h("p", null, "This page is for admins."),
      ),
      close: () => undefined,
    };
  }
  let isClosed = false;
  const entries: AuditEntry[] = [];
  const failure = h("p", { class: "error", role: "alert", hidden: true });

  const tokens = new Table<TokenInfo>({
    label: "Invitations",
    empty: "There are no invitations.",
    rowHeight,
    key: (token) => token.id,
    columns: [
      { title: "Name", width: "auto", fill: textColumn((token) => token.name), sort: (token) => token.name },
      {
        title: "Role",
        width: "7rem",
        fill: (cell, token) => {
          setText(cell, token.role);
          cell.title = roleTexts[token.role];
        },
        sort: (token) => token.role,
      },
      {
        title: "Job",
        width: "5rem",
        fill: textColumn((token) => (token.job === null ? "all" : `#${token.job}`)),
        hide: "phone",
      },
      {
        title: "Made",
        width: "11rem",
        fill: textColumn((token) => date(token.created)),
        sort: (token) => token.created,
        hide: "tablet",
      },
      {
        title: "Works until",
        width: "11rem",
        fill: textColumn((token) => (token.expires === null ? "taken back" : date(token.expires))),
        sort: (token) => token.expires ?? Infinity,
        hide: "phone",
      },
      { title: "", width: "8.5rem", phoneWidth: "7.5rem", fill: fillTake },
    ],
  });
  const audit = new Table<AuditEntry>({
    label: "Audit log",
    empty: "Nothing has been done yet.",
    rowHeight,
    key: (entry) => entry.number,
    columns: [
      {
        title: "Time",
        width: "9.5rem",
        phoneWidth: "6rem",
        fill: textColumn((entry) => when(entry.time, Date.now() / 1000)),
      },
      { title: "Who", width: "22%", fill: textColumn((entry) => entry.who || none), hide: "phone" },
      { title: "What", width: "auto", fill: fillWhat },
    ],
  });
  const more = button("Show older entries", "plain", () => void busy(more, fetchAudit));

  function fillTake(cell: HTMLTableCellElement, token: TokenInfo): void {
    if (cell.firstElementChild) return;
    cell.append(
      h(
        "button",
        {
          type: "button",
          class: "button plain small",
          "aria-label": `Take back ${token.name}`,
          onclick: () => void takeBack(token),
        },
        "Take back",
      ),
    );
  }

  async function takeBack(token: TokenInfo): Promise<void> {
    const sure = await ask(
      `Take back “${token.name}”?`,
      "Whoever came with it is signed out, and its workers leave.",
      "Take back",
    );
    if (!sure) return;
    try {
      await remove(`/tokens/${token.id}`);
      notice("The invitation no longer works.");
      await fetchTokens();
    } catch (thrown) {
      notice(textOf(thrown), "bad");
    }
  }

  async function fetchTokens(): Promise<void> {
    const answer = await get<{ tokens: TokenInfo[] }>("/tokens");
    if (!isClosed) tokens.set(answer.tokens);
  }

  async function fetchAudit(): Promise<void> {
    const last = entries[entries.length - 1];
    const answer = await get<{ entries: AuditEntry[] }>(`/audit${last ? `?before=${last.number}` : ""}`);
    entries.push(...answer.entries);
    more.hidden = answer.entries.length === 0;
    if (!isClosed) audit.set(entries.slice());
  }

  Promise.all([fetchTokens(), fetchAudit()]).catch((thrown: unknown) => {
    failure.textContent = textOf(thrown);
    failure.hidden = false;
  });
  return {
    title: "Access",
    node: h(
      "div",
      { class: "page" },
      h("h1", { tabindex: -1 }, "Access"),
      failure,
      card(
        "Invite",
        inviteForm(frame.server, null, () => void fetchTokens()),
      ),
      card("Invitations", tokens.node),
      card("Audit log", audit.node, more),
    ),
    close() {
      isClosed = true;
    },
  };
}
