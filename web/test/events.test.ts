import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser, type StreamEvent } from "../src/events";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test("an event ends with an empty line, whatever ends the lines", () => {
  for (const end of ["\n", "\r\n", "\r"]) {
    const events = new EventParser().feed(
      bytes(["event: job", 'data: {"id":1}', "", "data: x", "", "event: a", ""].join(end) + end),
    );
    const expected = [
      { name: "job", data: '{"id":1}' },
      { name: "message", data: "x" },
    ];
    // A last \r may be half of \r\n; what it would end here is an event without data, which does not count.
    assert.deepEqual(events, expected);
  }
});

test("it does not matter where the bytes are cut, not even inside a letter", () => {
  const text = ':\n\nevent: log\r\ndata: {"text":"Größe – 魚"}\r\n\r\ndata: one\ndata: two\n\n';
  const expected = new EventParser().feed(bytes(text));
  assert.equal(expected.length, 2);
  assert.equal(expected[1]?.data, "one\ntwo");
  for (let size = 1; size < 12; size++) {
    const parser = new EventParser();
    const events: StreamEvent[] = [];
    const all = bytes(text);
    for (let i = 0; i < all.length; i += size) events.push(...parser.feed(all.subarray(i, i + size)));
    assert.deepEqual(events, expected, `in pieces of ${size}`);
  }
});

test("comments and unknown fields are left out, and so is an event without data", () => {
  const events = new EventParser().feed(
    bytes(": hello\nid: 7\nretry: 5\nevent: nothing\n\nevent: rounds\ndata:[]\n\n"),
  );
  assert.deepEqual(events, [{ name: "rounds", data: "[]" }]);
});
