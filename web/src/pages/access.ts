// access.ts: for admins: who has been invited, who is banned, and what was done.

import { get, remove, textOf } from "../api";
import { auditWords } from "../audit_words";
import { h, later, setText } from "../dom";
import { date, none, when } from "../format";
import { untilText } from "../invitations";
import { inviteForm, roleTexts } from "../invite";
import { Live } from "../live";
import type { Frame, Page } from "../page";
import { ask, busy, button, card, notice } from "../parts";
import { Table, textColumn } from "../table";
import { may, type AuditEntry, type Ban, type TokenInfo } from "../types";

const rowHeight = 44;
const entriesAtOnce = 200; // of the audit log

function fillDeed(cell: HTMLTableCellElement, entry: AuditEntry): void {
  const { who, from, what } = auditWords(entry);
  if (!cell.firstElementChild)
    cell.append(
      h("span", { class: "deed" }, h("strong"), " ", h("span")),
      h("span", { class: "muted small" }),
    );
  const [name, deed] = cell.querySelectorAll(".deed > *");
  setText(name as Element, who);
  setText(deed as Element, what);
  setText(cell.lastElementChild as Element, from ? ` (${from})` : "");
  cell.title = `${entry.who}: ${entry.what}`;
}

// Once: a row is of one thing for as long as it is there.
function fillButton(cell: HTMLTableCellElement, text: string, label: string, act: () => void): void {
  if (cell.firstElementChild) return;
  cell.append(
    h("button", { type: "button", class: "button plain small", "aria-label": label, onclick: act }, text),
  );
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
      {
        title: "Name",
        width: "auto",
        wraps: true,
        fill: textColumn((token) => token.name),
        sort: (token) => token.name,
      },
      {
        title: "Role",
        width: "7rem",
        fill: (cell, token) => {
          setText(cell, token.role);
          cell.title = roleTexts[token.role];
        },
        sort: (token) => token.role,
        hide: "small",
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
        fill: textColumn((token) => untilText(token.expires)),
        sort: (token) => token.expires ?? Infinity,
        hide: "phone",
      },
      { title: "", width: "8.5rem", phoneWidth: "7.5rem", fill: fillTake },
    ],
  });
  const bans = new Table<Ban>({
    label: "Bans",
    empty: "Nobody is banned.",
    rowHeight,
    key: (ban) => ban.id,
    columns: [
      {
        title: "Who",
        width: "auto",
        wraps: true,
        fill: textColumn((ban) => ban.who),
        sort: (ban) => ban.who,
      },
      {
        title: "Why",
        width: "40%",
        wraps: true,
        fill: textColumn((ban) => ban.reason),
        hide: "phone",
      },
      {
        title: "Job",
        width: "5rem",
        fill: textColumn((ban) => (ban.job === null ? none : `#${ban.job}`)),
        hide: "tablet",
      },
      {
        title: "Since",
        width: "11rem",
        phoneWidth: "6rem",
        fill: textColumn((ban) => when(ban.time, Date.now() / 1000)),
        sort: (ban) => ban.time,
      },
      { title: "", width: "6rem", phoneWidth: "5rem", fill: fillLift },
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
      { title: "What was done", width: "auto", wraps: true, fill: fillDeed },
    ],
  });
  const more = button("Show older entries", "plain", () => void busy(more, fetchAudit));

  function fillTake(cell: HTMLTableCellElement, token: TokenInfo): void {
    fillButton(cell, "Take back", `Take back ${token.name}`, () => void takeBack(token));
  }

  async function takeBack(token: TokenInfo): Promise<void> {
    const sure = await ask(
      `Take back “${token.name}”?`,
      "Everybody who came with it is signed out, and its workers leave.",
      "Take back",
    );
    if (!sure) return;
    try {
      await remove(`/tokens/${token.id}`);
      notice("The invitation no longer works.");
    } catch (thrown) {
      notice(textOf(thrown), "bad");
    }
  }

  function fillLift(cell: HTMLTableCellElement, ban: Ban): void {
    fillButton(cell, "Lift", `Lift the ban of ${ban.who}`, () => void lift(ban));
  }

  async function lift(ban: Ban): Promise<void> {
    const sure = await ask(
      `Lift the ban of “${ban.who}”?`,
      "It may work again, as a newcomer: everything that it computes is computed again, to begin with.",
      "Lift",
    );
    if (!sure) return;
    try {
      await remove(`/bans/${ban.id}`);
      notice("The ban is lifted.");
    } catch (thrown) {
      notice(textOf(thrown), "bad");
    }
  }

  async function fetchBans(): Promise<void> {
    const answer = await get<{ bans: Ban[] }>("/bans");
    if (!isClosed) bans.set(answer.bans);
  }

  async function fetchTokens(): Promise<void> {
    const answer = await get<{ tokens: TokenInfo[] }>("/tokens");
    if (!isClosed) tokens.set(answer.tokens);
  }

  async function fetchAudit(): Promise<void> {
    const last = entries[entries.length - 1];
    const answer = await get<{ entries: AuditEntry[] }>(`/audit${last ? `?before=${last.number}` : ""}`);
    entries.push(...answer.entries);
    more.hidden = answer.entries.length < entriesAtOnce;
    if (!isClosed) audit.set(entries.slice());
  }

  // What was done since, or from the beginning where that is too much.
  async function fetchNewer(): Promise<void> {
    const newest = entries[0]?.number ?? 0;
    const answer = await get<{ entries: AuditEntry[] }>("/audit");
    const newer = answer.entries.filter((entry) => entry.number > newest);
    if (newer.length === answer.entries.length) {
      entries.length = 0;
      more.hidden = newer.length < entriesAtOnce;
    }
    entries.unshift(...newer);
    if (!isClosed) audit.set(entries.slice());
  }

  // All of it changes by what the audit log tells of, whoever did it.
  async function fetchAll(): Promise<void> {
    try {
      await Promise.all([fetchTokens(), fetchBans(), fetchNewer()]);
      failure.hidden = true;
    } catch (thrown) {
      failure.textContent = textOf(thrown);
      failure.hidden = false;
    }
  }

  const soon = later(100, () => void fetchAll());
  const live: Live = new Live("/live", {
    opened: fetchAll,
    event: (name) => {
      if (name === "audit") soon();
    },
    state: (now, retryMs, why) => frame.live(now, retryMs, why, () => live.now()),
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
        h(
          "p",
          { class: "hint" },
          "Make one invitation per machine: a ban holds for every machine that came with the same one.",
        ),
        inviteForm(frame.server, null, () => undefined),
      ),
      card("Invitations", tokens.node),
      card("Bans", bans.node),
      card("Audit log", audit.node, more),
    ),
    close() {
      isClosed = true;
      live.close();
    },
  };
}
