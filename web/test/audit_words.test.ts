import assert from "node:assert/strict";
import { test } from "node:test";
import { auditWords, whoWords } from "../src/audit_words";

function words(what: string, who = "token 3 (Ann) from 192.0.2.7"): string {
  const said = auditWords({ who, what });
  return `${said.who} ${said.what}`;
}

test("who did it is told by name, and from where beside it", () => {
  assert.deepEqual(whoWords("token 3 (Ann) from 192.0.2.7"), { who: "Ann", from: "token 3, from 192.0.2.7" });
  assert.deepEqual(whoWords("token 3 (A (b))"), { who: "A (b)", from: "token 3" });
  assert.equal(whoWords("local").who, "Somebody on the server's machine");
  assert.deepEqual(whoWords("no token, from ::1"), { who: "Somebody without a token", from: "from ::1" });
  assert.equal(whoWords("server").who, "The server");
});

test("what was done is a sentence, with the names of what it was done to", () => {
  assert.equal(
    words("POST /api/v1/tokens: 201 (volunteer, lab 3)"),
    "Ann made an invitation for a volunteer, “lab 3”",
  );
  assert.equal(
    words("POST /api/v1/tokens: 201 (20, volunteer, lab)"),
    "Ann made 20 invitations for volunteers, “lab 1” to “lab 20”",
  );
  assert.equal(
    words("DELETE /api/v1/tokens/9: 204 (admin, Bob, the other)"),
    "Ann took back invitation 9 for an admin, “Bob, the other”",
  );
  assert.equal(words("POST /api/v1/jobs: 201 (12 digits (small))"), "Ann started job 12, “digits (small)”");
  assert.equal(words("POST /api/v1/jobs/12/stop: 200 (digits)"), "Ann stopped job 12, “digits”");
  assert.equal(words("DELETE /api/v1/jobs/12: 204 (digits)"), "Ann deleted job 12, “digits”");
  assert.equal(
    words("PUT /api/v1/datasets/my%20set/files/a.csv: 201"),
    "Ann uploaded the file “a.csv” of the data “my set”",
  );
  assert.equal(words("DELETE /api/v1/bans/4: 204"), "Ann lifted ban 4");
});

test("entries of before, without what they were about, are sentences, too", () => {
  assert.equal(words("POST /api/v1/tokens: 201"), "Ann made an invitation");
  assert.equal(words("POST /api/v1/jobs: 201"), "Ann started a job");
  assert.equal(words("DELETE /api/v1/jobs/12: 204"), "Ann deleted job 12");
});

test("what was refused is told as tried, with the reason", () => {
  assert.equal(
    words("DELETE /api/v1/jobs/12: 409 (digits)"),
    "Ann tried to delete job 12, “digits”, in vain: its state does not allow it",
  );
  assert.equal(
    words("POST /api/v1/tokens: 422"),
    "Ann tried to make an invitation, in vain: something in it is wrong",
  );
  assert.equal(
    words("POST /api/v1/jobs: 503"),
    "Ann tried to start a job, in vain: the server could not do it",
  );
});

test("what is a sentence already stays one, and what nobody knows is shown as it is", () => {
  assert.equal(
    words("token 4 is banned, in job 7: x", "server"),
    "The server token 4 is banned, in job 7: x",
  );
  assert.equal(words("PATCH /api/v1/x: 200"), "Ann asked for PATCH /x");
});
