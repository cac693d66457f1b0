// audit_words.ts: an entry of the audit log as a sentence. Pure.
//
// The server writes the request, the status that it came to, and what it was about in brackets: "POST
// /api/v1/tokens: 201 (volunteer, lab 3)". What is in another form, bans for example, is a sentence already.

import { count, counted } from "./format";
import type { AuditEntry } from "./types";

export interface AuditWords {
  who: string;
  from: string; // the address, or which token; "" where nothing is known
  what: string; // what comes behind the name: "made an invitation for a volunteer, “lab 3”"
}

// "token 3 (Ann) from 192.0.2.7", "local", "no token, from 192.0.2.7", "server"
export function whoWords(who: string): { who: string; from: string } {
  const token = /^token (\d+) \((.*)\)(?: from (\S+))?$/.exec(who);
  if (token) {
    const [, number, name, address] = token;
    return { who: name || `token ${number}`, from: `token ${number}${address ? `, from ${address}` : ""}` };
  }
  const nobody = /^no token, from (\S+)$/.exec(who);
  if (nobody) return { who: "Somebody without a token", from: `from ${nobody[1]}` };
  if (who === "local") return { who: "Somebody on the server's machine", from: "" };
  return { who: who === "server" ? "The server" : who || "Somebody", from: "" };
}

const roles: Record<string, string> = {
  metrics: "a program that reads metrics",
  viewer: "a viewer",
  volunteer: "a volunteer",
  host: "a host",
  admin: "an admin",
};

function quoted(name: string): string {
  return name === "" ? "" : ` “${name}”`;
}

function named(name: string): string {
  return name === "" ? "" : `,${quoted(name)}`;
}

function invited(about: string): string {
  const many = /^(\d+), (\w+), (.*)$/.exec(about);
  if (many) {
    const [, number, role, name] = many;
    const those = counted(Number(number), "invitation");
    return `made ${those} for ${role}s,${quoted(`${name} 1`)} to${quoted(`${name} ${count(Number(number))}`)}`;
  }
  return `made an invitation${aRole(about)}`;
}

// "volunteer, lab 3"
function aRole(about: string): string {
  const one = /^(\w+), (.*)$/.exec(about);
  return one ? ` for ${roles[one[1] as string] ?? one[1]},${quoted(one[2] as string)}` : "";
}

// What a request did: by its method and path, with `*` for what is looked up, and what it was about.
type Words = (names: string[], about: string) => string;
const deeds: [pattern: string, done: Words][] = [
  [
    "POST /jobs",
    (_, about) => (about ? `started job ${about.replace(/^(\d+) (.*)$/, "$1, “$2”")}` : "started a job"),
  ],
  ["POST /jobs/*/stop", ([id], about) => `stopped job ${id}${named(about)}`],
  ["POST /jobs/*/resume", ([id], about) => `resumed job ${id}${named(about)}`],
  ["DELETE /jobs/*", ([id], about) => `deleted job ${id}${named(about)}`],
  ["PUT /models/*", ([name]) => `saved the model${quoted(name ?? "")}`],
  ["DELETE /models/*", ([name]) => `deleted the model${quoted(name ?? "")}`],
  [
    "PUT /datasets/*/files/*",
    ([set, file]) => `uploaded the file${quoted(file ?? "")} of the data${quoted(set ?? "")}`,
  ],
  ["POST /datasets/*", ([name]) => `made the data set${quoted(name ?? "")}`],
  ["DELETE /datasets/*", ([name]) => `deleted the data set${quoted(name ?? "")}`],
  ["POST /tokens", (_, about) => invited(about)],
  ["DELETE /tokens/*", ([id], about) => `took back invitation ${id}${aRole(about)}`],
  ["DELETE /bans/*", ([id]) => `lifted ban ${id}`],
];

const refusals: Record<number, string> = {
  400: "it could not be read",
  401: "the token is wrong or expired",
  403: "that is not allowed with this invitation",
  404: "it is not there",
  409: "its state does not allow it",
  413: "it is too large",
  422: "something in it is wrong",
  429: "too much at once",
};

// "made" is tried "to make": a sentence for what did not happen.
const attempts: [RegExp, string][] = [
  [/^started/, "start"],
  [/^stopped/, "stop"],
  [/^resumed/, "resume"],
  [/^deleted/, "delete"],
  [/^saved/, "save"],
  [/^uploaded/, "upload"],
  [/^made/, "make"],
  [/^took back/, "take back"],
  [/^lifted/, "lift"],
];

function attempt(done: string): string {
  const found = attempts.find(([past]) => past.test(done));
  return found ? done.replace(found[0], `tried to ${found[1]}`) : `tried: ${done}`;
}

function namesIn(pattern: string, path: string): string[] | null {
  const wanted = pattern.split("/");
  const parts = path.split("/");
  if (parts.length !== wanted.length) return null;
  const names: string[] = [];
  for (const [i, word] of wanted.entries()) {
    if (word === "*") names.push(decoded(parts[i] as string));
    else if (word !== parts[i]) return null;
  }
  return names;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function deedOf(method: string, path: string, about: string): string {
  for (const [pattern, done] of deeds) {
    const names = namesIn(pattern, `${method} ${path}`);
    if (names) return done(names, about);
  }
  return `asked for ${method} ${path}`;
}

export function auditWords(entry: Pick<AuditEntry, "who" | "what">): AuditWords {
  const whose = whoWords(entry.who);
  const request = /^([A-Z]+) (?:\/api\/v1)?(\/\S*): (\d{3})(?: \((.*)\))?$/.exec(entry.what);
  if (!request) return { ...whose, what: entry.what };
  const [, method, path, status, about] = request;
  const done = deedOf(method as string, path as string, about ?? "");
  const code = Number(status);
  if (code < 400) return { ...whose, what: done };
  const why = refusals[code] ?? (code >= 500 ? "the server could not do it" : `status ${code}`);
  return { ...whose, what: `${attempt(done)}, in vain: ${why}` };
}
