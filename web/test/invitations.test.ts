import assert from "node:assert/strict";
import { test } from "node:test";
import { invitationsCsv, untilText } from "../src/invitations";
import type { NewToken } from "../src/types";

function token(name: string, more: Partial<NewToken> = {}): NewToken {
  return {
    id: 1,
    role: "volunteer",
    name,
    job: null,
    created: 0,
    expires: null,
    token: "T",
    link: "",
    ...more,
  };
}

test("an invitation without an end says so, and does not read as if it were taken back", () => {
  assert.equal(untilText(null), "no end date");
  assert.match(untilText(1_800_000_000), /^2027-01-15 /);
});

test("many invitations are a table with a link and a command each", () => {
  const rows = invitationsCsv(
    [token("lab 1"), token('the "red", one', { role: "viewer" })],
    (one) => `http://h/#t=${one.name[0]}`,
  );
  assert.deepEqual(rows.split("\r\n"), [
    "name,role,works until,link,command",
    "lab 1,volunteer,no end date,http://h/#t=l,shoal work 'http://h/#t=l'",
    '"the ""red"", one",viewer,no end date,http://h/#t=t,',
    "",
  ]);
});
