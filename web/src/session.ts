// session.ts: the token that this browser shows to the server. It comes in the address, behind the #, and is
// taken out of it at once; it is kept for this tab, or for good where "stay signed in" was ticked.

import { parseHash, type Invitation } from "./link";

const key = "shoal.invitation";

function read(storage: Storage): Invitation | null {
  try {
    const kept = JSON.parse(storage.getItem(key) ?? "null") as Invitation | null;
    return kept && typeof kept.token === "string" ? kept : null;
  } catch {
    return null;
  }
}

let current: Invitation | null = null;

export function startSession(): void {
  takeFromAddress();
  current ??= read(sessionStorage) ?? read(localStorage);
}

// True when the address had a token.
export function takeFromAddress(): boolean {
  const found = parseHash(location.hash);
  if (!found) return false;
  history.replaceState(null, "", location.pathname + location.search);
  signIn(found, false);
  return true;
}

export function signIn(invitation: Invitation, stay: boolean): void {
  current = invitation;
  sessionStorage.setItem(key, JSON.stringify(invitation));
  if (stay) localStorage.setItem(key, JSON.stringify(invitation));
}

export function signOut(): void {
  current = null;
  sessionStorage.removeItem(key);
  localStorage.removeItem(key);
}

export function isStaying(): boolean {
  return read(localStorage) !== null;
}

export function stay(on: boolean): void {
  if (on && current) localStorage.setItem(key, JSON.stringify(current));
  else localStorage.removeItem(key);
}

export function invitation(): Invitation | null {
  return current;
}

export function authorization(): Record<string, string> {
  return current ? { Authorization: `Bearer ${current.token}` } : {};
}
