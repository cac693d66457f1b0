import assert from "node:assert/strict";
import { test } from "node:test";
import { pauseMs } from "../src/live";

test("pauses grow, with a limit", () => {
  assert.equal(pauseMs(0, 0.5), 500);
  assert.ok(pauseMs(3, 0) > pauseMs(0, 1));
  assert.ok(pauseMs(50, 1) <= 20_000);
});
