// spec.ts: what a job is submitted with, where the server is particular about it; and the same as a command.
// Pure.

import { fileName, shellWord } from "./format";
import type { Dataset, Job } from "./types";

export const nameBytesMax = 64; // of names of jobs, models and data sets: "maxLength" of docs/openapi.json

// How contributions travel, and what each is called in a form.
export const wires: [string, string][] = [
  ["f32", "f32: exact, 4 bytes a weight"],
  ["bf16", "bf16: 2 bytes"],
  ["int8", "int8: 1 byte"],
  ["topk", "topk: only the largest"],
];

// How the contributions of a round become one, and what each is called in a form.
export const rules: [string, string][] = [
  ["mean", "mean: all count alike"],
  ["median", "median of each weight"],
  ["trimmed:0.2", "trimmed:0.2: mean without a fifth at each end"],
  ["krum:1", "krum:1: the one most like the others"],
  ["multi-krum:1", "multi-krum:1: the mean of the most alike"],
  ["clip", "clip: mean with what is far off pulled in"],
];

// Which samples a unit of work takes.
export const shuffles: [string, string][] = [
  ["", "as the model says"],
  ["all", "all: any sample anywhere"],
  ["lanes", "lanes: each worker a part of the data"],
];

// The text as a name that the server takes.
export function goodName(text: string): string {
  const plain = text.replace(/[\u0000-\u001f\u007f/\\:*?"<>|%#]/g, "-").replace(/^[. ]+/, "");
  const utf8 = new TextEncoder();
  let name = "";
  let bytes = 0;
  for (const character of plain) {
    bytes += utf8.encode(character).length;
    if (bytes > nameBytesMax) break;
    name += character;
  }
  return name.trim() || "job";
}

// The column that a training of this table predicts when nobody says otherwise.
export function usualTarget(set: Pick<Dataset, "columns" | "target">): string | null {
  const columns = set.columns ?? [];
  return set.target ?? columns[columns.length - 1]?.name ?? null;
}

// What comes to the same model on one machine. Other modes and formats than these give another one each time.
export function trainCommand(job: Pick<Job, "name" | "spec">): string | null {
  const { spec } = job;
  if (spec.mode !== "sync" || spec.wire !== "f32" || (spec.rule ?? "mean") !== "mean") return null;
  const options: [string, string | number | undefined][] = [
    ["--data", spec.data ?? "DATA"],
    ["--target", spec.target],
    ["--valid", spec.valid || undefined],
    ["--epochs", spec.epochs],
    ["--batch", spec.batch],
    ["--rate", spec.rate],
    ["--seed", spec.seed],
  ];
  const given = options.filter(([, value]) => value !== undefined && value !== "");
  const words = given.map(([name, value]) => `${name} ${shellWord(String(value))}`);
  return ["shoal train", `${fileName(job.name)}.net`, ...words].join(" ");
}
