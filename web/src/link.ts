// link.ts: invitation links, http(s)://HOST:PORT/#t=TOKEN&fp=FINGERPRINT. Pure.

export interface Invitation {
  token: string;
  fingerprint: string | null;
}

const tokenPattern = /^[A-Za-z0-9_-]{22}$/;

// Reads the part behind the #.
export function parseHash(hash: string): Invitation | null {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const token = fields.get("t") ?? "";
  if (!tokenPattern.test(token)) return null;
  const fingerprint = fields.get("fp");
  return { token, fingerprint: fingerprint && /^[0-9a-fA-F]{64}$/.test(fingerprint) ? fingerprint : null };
}

// Reads what somebody pasted: a link, the part behind its #, or a token alone.
export function parsePasted(text: string): Invitation | null {
  const pasted = text.trim();
  if (tokenPattern.test(pasted)) return { token: pasted, fingerprint: null };
  const hash = pasted.indexOf("#");
  return parseHash(hash >= 0 ? pasted.slice(hash) : pasted);
}

// Without a token for a server that is open; the fingerprint, of its key, is needed there, too, since nobody
// else vouches for a certificate that it made itself.
export function linkOf(origin: string, token: string | null, fingerprint: string | null): string {
  const fields = [token && `t=${token}`, fingerprint && `fp=${fingerprint}`].filter(Boolean);
  return `${origin}/${fields.length > 0 ? "#" : ""}${fields.join("&")}`;
}

export function isLoopback(origin: string): boolean {
  const host = new URL(origin).hostname;
  return host === "localhost" || host === "[::1]" || /^127\./.test(host);
}

// The link to give away: with the address under which this page was reached, since that is known to work,
// or the one that the server gave when this page came over loopback.
export function linkToShare(
  origin: string,
  token: string,
  fingerprint: string | null,
  fromServer: string,
): string {
  if (!isLoopback(origin)) return linkOf(origin, token, fingerprint);
  return fromServer || linkOf(origin, token, fingerprint);
}

// The same, straight to the page of one job.
export function linkToJob(
  origin: string,
  token: string,
  fingerprint: string | null,
  fromServer: string,
  job: number,
): string {
  const link = new URL(linkToShare(origin, token, fingerprint, fromServer));
  link.pathname = `/jobs/${job}`;
  return link.href;
}
