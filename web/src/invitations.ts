// invitations.ts: many invitations as a file, and until when one works. Pure.

import { date, shellWord } from "./format";
import type { NewToken } from "./types";

export const invitationsMax = 500; // at once

export const noEnd = "no end date";

export function untilText(expires: number | null): string {
  return expires === null ? noEnd : date(expires);
}

function cell(text: string): string {
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

// A row each: what it is called, what it is for, until when it works, the link, and the command that uses it.
export function invitationsCsv(tokens: NewToken[], link: (token: NewToken) => string): string {
  const rows = tokens.map((token) => {
    const url = link(token);
    const command = token.role === "viewer" || token.role === "metrics" ? "" : `shoal work ${shellWord(url)}`;
    return [token.name, token.role, untilText(token.expires), url, command].map(cell).join(",");
  });
  return `name,role,works until,link,command\r\n${rows.map((row) => `${row}\r\n`).join("")}`;
}
