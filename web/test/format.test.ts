import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ago,
  bytes,
  capital,
  count,
  counted,
  duration,
  figure,
  fileName,
  lag,
  none,
  percent,
  rate,
  shellWord,
  short,
  tidy,
  value,
  when,
} from "../src/format";

test("counts have commas", () => {
  assert.equal(count(0), "0");
  assert.equal(count(999), "999");
  assert.equal(count(431080), "431,080");
  assert.equal(count(12345678.4), "12,345,678");
});

test("one of a thing is not many", () => {
  assert.deepEqual(
    [0, 1, 2, 1200].map((n) => counted(n, "trial")),
    ["0 trials", "1 trial", "2 trials", "1,200 trials"],
  );
  assert.equal(counted(1, "worker is", "workers are"), "1 worker is");
  assert.equal(counted(3, "worker is", "workers are"), "3 workers are");
});

test("sentences begin with a capital letter", () => {
  assert.equal(capital("waits for workers"), "Waits for workers");
  assert.equal(capital(""), "");
});

test("short numbers never get longer than they may", () => {
  assert.deepEqual([0, 0.5, 9.96, 950, 999.6, 1200, 9960, 34_000, 999_600, 5.1e6, 2e9].map(short), [
    "0",
    "0.5",
    "10",
    "950",
    "1.0k",
    "1.2k",
    "10k",
    "34k",
    "1.0M",
    "5.1M",
    "2.0G",
  ]);
  assert.equal(short(NaN), none);
});

test("values keep the digits that count", () => {
  assert.deepEqual([0, 0.91304, 2.30258, 115.27, 4321.5, 54321, 0.0000123].map(value), [
    "0.0000",
    "0.9130",
    "2.3026",
    "115.3",
    "4322",
    "54k",
    "1.23e-5",
  ]);
  assert.equal(value(null), none);
  assert.equal(value(Infinity), none);
});

test("large numbers that are compared keep their digits", () => {
  assert.deepEqual([58_321.4, 1234.5, 0.86123, null, 2e9].map(figure), [
    "58,321",
    "1,235",
    "0.8612",
    "–",
    "2.0000e+9",
  ]);
});

test("axes have no zeros that say nothing", () => {
  assert.deepEqual([0, 0.5, 2, 0.30000000000000004, 25_000].map(tidy), ["0", "0.5", "2", "0.3", "25k"]);
});

test("shares, speeds, sizes", () => {
  assert.deepEqual([0, 0.0004, 0.025, 0.5, 1].map(percent), ["0%", "<0.1%", "2.5%", "50%", "100%"]);
  assert.deepEqual([null, 0, 12_500].map(rate), [none, none, "13k"]);
  assert.deepEqual([12, 2048, 54950048, 8 * 2 ** 30].map(bytes), ["12 B", "2.0 KB", "52 MB", "8.0 GB"]);
});

test("durations have at most two units", () => {
  assert.deepEqual([0.83, 42, 60, 185, 3600, 7830, 90_000].map(duration), [
    "0.8 s",
    "42 s",
    "1 min",
    "3 min 5 s",
    "1 h",
    "2 h 10 min",
    "1 d 1 h",
  ]);
  assert.equal(lag(0.22), "220 ms");
  assert.equal(ago(100, 102), "just now");
  assert.equal(ago(100, 285), "3 min ago");
});

test("names become safe file names and shell words", () => {
  assert.equal(fileName("lenet5 on fashion-mnist"), "lenet5-on-fashion-mnist");
  assert.equal(fileName("../../etc"), "etc");
  assert.equal(fileName("鱼"), "model");
  assert.equal(shellWord("toy:wave"), "toy:wave");
  assert.equal(shellWord("http://h:1/#t=a&fp=b"), "'http://h:1/#t=a&fp=b'");
  assert.equal(shellWord("it's"), `'it'\\''s'`);
});

test("what happened today has no date", () => {
  const noon = new Date(2026, 4, 3, 12, 30, 5).getTime() / 1000;
  assert.equal(when(noon, noon + 60), "12:30:05");
  assert.equal(when(noon, noon + 3 * 86_400), "2026-05-03 12:30");
});
