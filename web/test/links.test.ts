import assert from "node:assert/strict";
import { test } from "node:test";
import { isLoopback, linkOf, linkToShare, parseHash, parsePasted } from "../src/link";
import { routeOf } from "../src/routes";

const token = "AbCdEfGhIjKlMnOpQrSt-_";
const fingerprint = "0123456789abcdef".repeat(4);

test("a link is read as a whole, by its end, or as a token alone", () => {
  for (const text of [`https://h:8080/#t=${token}`, `#t=${token}`, `t=${token}`, `  ${token}\n`]) {
    assert.deepEqual(parsePasted(text), { token, fingerprint: null }, text);
  }
  assert.deepEqual(parseHash(`#t=${token}&fp=${fingerprint}`), { token, fingerprint });
});

test("what is no invitation is refused", () => {
  for (const text of ["", "#", "#main", "#t=", "#t=short", `https://h/${token}`, `#t=${token}x`]) {
    assert.equal(parsePasted(text), null, text);
  }
  assert.deepEqual(parseHash(`#t=${token}&fp=12`), { token, fingerprint: null });
});

test("a link that is made can be read", () => {
  assert.deepEqual(parsePasted(linkOf("https://h:1", token, fingerprint)), { token, fingerprint });
  assert.equal(linkOf("http://h:1", null, null), "http://h:1/");
  assert.equal(linkOf("https://h:1", null, fingerprint), `https://h:1/#fp=${fingerprint}`);
});

test("a link to share does not lead to the own machine where the server knows better", () => {
  assert.ok(
    isLoopback("http://127.0.0.1:8080") && isLoopback("http://localhost") && isLoopback("http://[::1]:8080"),
  );
  assert.equal(
    linkToShare("http://127.0.0.1:1", token, null, "http://10.0.0.1:1/#t=x"),
    "http://10.0.0.1:1/#t=x",
  );
  assert.equal(
    linkToShare("http://10.0.0.2:1", token, null, "http://0.0.0.0:1/#t=x"),
    `http://10.0.0.2:1/#t=${token}`,
  );
});

test("paths lead to pages", () => {
  assert.deepEqual(routeOf("/"), { page: "overview" });
  assert.deepEqual(routeOf("/workers"), { page: "overview" });
  assert.deepEqual(routeOf("/host", "?from=12"), { page: "host", from: 12 });
  assert.deepEqual(routeOf("/host", "?from=x"), { page: "host", from: null });
  assert.deepEqual(routeOf("/jobs/7"), { page: "job", id: 7 });
  for (const path of ["/jobs", "/jobs/0", "/jobs/x", "/jobs/7/x", "/host/x", "/nothing"])
    assert.deepEqual(routeOf(path), { page: "missing" }, path);
});
