// api.ts: requests to the server. A failure is a Problem, with the text that the server gave.

import { authorization } from "./session";

export class Problem extends Error {
  constructor(
    readonly status: number, // 0: the server was not reached
    readonly code: string,
    text: string,
    readonly field: string | null = null,
    readonly line: number | null = null,
    readonly column: number | null = null,
  ) {
    super(text);
  }
}

interface ErrorBody {
  error?: { code?: string; text?: string; field?: string; line?: number; column?: number };
}

export function problemOf(status: number, body: string): Problem {
  let said: ErrorBody["error"];
  try {
    said = (JSON.parse(body) as ErrorBody).error;
  } catch {
    said = undefined;
  }
  const text = said?.text ?? `the server answered with status ${status}`;
  return new Problem(
    status,
    said?.code ?? "",
    text,
    said?.field ?? null,
    said?.line ?? null,
    said?.column ?? null,
  );
}

// What to show for anything that was thrown.
export function textOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

let refused: () => void = () => undefined;
// Called whenever the server asks for a token, or does not accept the one it got.
export function whenRefused(call: () => void): void {
  refused = call;
}

async function send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers: {
        ...authorization(),
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      cache: "no-store",
      signal: signal ?? null,
    });
  } catch (thrown) {
    if (signal?.aborted) throw thrown;
    throw new Problem(0, "unreachable", "the server cannot be reached");
  }
  if (response.ok) return response;
  if (response.status === 401) refused();
  throw problemOf(response.status, await response.text());
}

const root = "/api/v1";

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await send("GET", root + path, undefined, signal)).json()) as T;
}

export async function post<T>(path: string, body: unknown = {}, signal?: AbortSignal): Promise<T> {
  return (await (await send("POST", root + path, body, signal)).json()) as T;
}

export async function put(path: string, body: unknown): Promise<void> {
  await send("PUT", root + path, body);
}

export async function remove(path: string): Promise<void> {
  await send("DELETE", root + path);
}

export async function openStream(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const response = await send("GET", root + path, undefined, signal);
  if (!response.body) throw new Problem(0, "unreachable", "the browser gave no stream");
  return response.body;
}

// A file of the server, saved under `name`. It is asked for here and not by a plain link, since only so
// the token goes along.
export async function download(path: string, name: string): Promise<void> {
  save(await (await send("GET", root + path)).blob(), name);
}

// A text that the page has made.
export function saveText(text: string, name: string): void {
  save(new Blob([text], { type: "text/csv" }), name);
}

function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// Sends a file as it is and tells how far it got, from 0 to 1.
export function upload(
  path: string,
  file: Blob,
  told: (done: number) => void,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    // fetch cannot tell how much of a body has been sent.
    const request = new XMLHttpRequest();
    request.open("PUT", root + path);
    for (const [name, value] of Object.entries(authorization())) request.setRequestHeader(name, value);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = (event) => told(event.total > 0 ? event.loaded / event.total : 0);
    request.onload = () => {
      if (request.status >= 200 && request.status < 300) resolve();
      else reject(problemOf(request.status, request.responseText));
    };
    request.onerror = () => reject(new Problem(0, "unreachable", "the connection broke during the upload"));
    request.onabort = () => reject(new Problem(0, "aborted", "the upload was stopped"));
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}
