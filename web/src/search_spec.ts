// search_spec.ts: what a search is submitted with: the problem that follows from the target, words of a
// dialect, lines of a space; and the same as a command. Pure.

import { shellWord } from "./format";
import type { Dialect, SearchProgress, SearchSpec, TableColumn } from "./search_types";

export type Problem = "binary" | "multiclass" | "regression";

const classesOfNumbersMax = 20; // as in src/search/target.c

export const metricsOf: Record<"classes" | "regression", [string, string][]> = {
  classes: [
    ["", "accuracy, as usual"],
    ["balanced-accuracy", "balanced accuracy: classes count alike"],
    ["f1", "F1"],
    ["auc", "AUC: area under the ROC curve"],
    ["log-loss", "log loss: of the probabilities"],
  ],
  regression: [
    ["", "RMSE, as usual"],
    ["mae", "MAE: mean absolute error"],
    ["r2", "R²: share that is explained"],
  ],
};

const metricTexts: Record<string, string> = {
  "balanced-accuracy": "balanced accuracy",
  "log-loss": "log loss",
  f1: "F1",
  auc: "AUC",
  rmse: "RMSE",
  mae: "MAE",
  r2: "R²",
};

// A metric as people write it.
export function metricText(metric: string): string {
  return metricTexts[metric] ?? metric;
}

export interface SearchScore {
  score: number | null;
  name: string; // what it is of, and on which rows
  short: string; // the same in a list
}

// What a search is worth. The model that it made is judged by the test rows, or where none were kept by what is
// expected of it on new rows; until there is one, there is only what the best trial has on the rows that it was
// chosen by.
export function searchScores(
  search: Pick<SearchProgress, "phase" | "best" | "best_score" | "metric" | "test_score" | "estimate">,
): { main: SearchScore; beside: SearchScore | null } {
  const metric = metricText(search.metric || "score");
  const isOver = search.phase === "ended";
  const best: SearchScore = {
    score: search.best > 0 ? search.best_score : null,
    name: `Validation ${metric} of the best trial${isOver ? "" : " so far"}`,
    short: "validation",
  };
  const test = search.test_score ?? null;
  const expected = search.estimate ?? null;
  if (isOver && test === null && expected !== null)
    return { main: { score: expected, name: `Expected ${metric} of the model`, short: "expected" }, beside: best };
  if (!isOver || test === null) return { main: best, beside: null };
  return { main: { score: test, name: `Test ${metric} of the model`, short: "test" }, beside: best };
}

export const schedulers: [string, string][] = [
  ["model", "by a model of what was good so far"],
  ["halving", "halving: many start, the best continue"],
  ["random", "random"],
  ["grid", "grid: everything, one after another"],
];

// Trials begin with few epochs, and only the best go on.
export function isStaged(spec: { scheduler?: string }): boolean {
  return spec.scheduler !== "random" && spec.scheduler !== "grid";
}

// How trials are chosen, in a few words.
export function schedulerText(scheduler: string): string {
  const texts: Record<string, string> = {
    model: "trials chosen by what was good so far",
    halving: "trials chosen by chance, of which the best continue",
    random: "trials chosen by chance",
    grid: "every combination is tried",
  };
  return texts[scheduler] ?? scheduler;
}

// Columns of which something can be predicted.
export function canBeTarget(column: TableColumn): boolean {
  return column.kind === "number" || column.kind === "category" || column.kind === "date";
}

// What predicting the column is, and why.
export function problemOf(column: TableColumn): Problem {
  if (column.kind !== "category") {
    const isWhole = column.min === undefined || wholeRange(column);
    if (column.distinct > classesOfNumbersMax || !isWhole) return "regression";
  }
  return column.distinct <= 2 ? "binary" : "multiclass";
}

// The profile has no list of a column's numbers; few between ends that are whole are whole, mostly.
function wholeRange(column: TableColumn): boolean {
  return [column.min, column.max, ...(column.quartiles ?? [])].every(
    (n) => n === null || n === undefined || Number.isInteger(n),
  );
}

export function problemText(column: TableColumn): string {
  switch (problemOf(column)) {
    case "regression":
      return "A number is predicted: a regression.";
    case "binary":
      return "One of two classes is predicted.";
    default:
      return `One of ${column.distinct} classes is predicted.`;
  }
}

// ---- dialects: words such as "delimiter semicolon header no" ----

export const dialectChoices: Record<string, [string, string][]> = {
  delimiter: [
    ["comma", "comma ,"],
    ["semicolon", "semicolon ;"],
    ["tab", "tab"],
    ["pipe", "pipe |"],
  ],
  decimal: [
    ["point", "point: 1.5"],
    ["comma", "comma: 1,5"],
  ],
  encoding: [
    ["utf-8", "UTF-8"],
    ["latin-1", "Latin-1"],
    ["utf-16le", "UTF-16 LE"],
    ["utf-16be", "UTF-16 BE"],
  ],
  header: [
    ["yes", "has names of columns"],
    ["no", "is data already"],
  ],
};

// The word for each part of a dialect that was found.
export function dialectWord(dialect: Dialect, part: string): string {
  const delimiters: Record<string, string> = { ",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe" };
  if (part === "delimiter") return delimiters[dialect.delimiter] ?? dialect.delimiter;
  if (part === "decimal") return dialect.decimal === "," ? "comma" : "point";
  if (part === "encoding") return dialect.encoding;
  return dialect.header ? "yes" : "no";
}

export function dialectText(said: Record<string, string>): string {
  return Object.keys(dialectChoices)
    .filter((part) => said[part])
    .map((part) => `${part} ${said[part]}`)
    .join(" ");
}

export function parseDialect(text: string): Record<string, string> {
  const words = text.split(/\s+/).filter((word) => word !== "");
  const said: Record<string, string> = {};
  for (let i = 0; i + 1 < words.length; i += 2) said[words[i] as string] = words[i + 1] as string;
  return said;
}

// ---- the space: one setting a line ----

function isLineOf(line: string, setting: string): boolean {
  return line.trim().split(/\s+/)[0] === setting;
}

// What a setting's line says behind its name; "" where there is none.
export function spaceLine(text: string, setting: string): string {
  const line = text.split("\n").find((one) => isLineOf(one, setting));
  return line === undefined ? "" : (line.split("#")[0] as string).trim().slice(setting.length).trim();
}

// The text with that line in it, or without one when `said` is "".
export function withSpaceLine(text: string, setting: string, said: string): string {
  const lines = text.split("\n");
  const at = lines.findIndex((line) => isLineOf(line, setting));
  const line = `${setting.padEnd(11)} ${said}`;
  if (at >= 0 && said) lines[at] = line;
  else if (at >= 0) lines.splice(at, 1);
  else if (said) lines.push(line);
  return lines.join("\n").replace(/^\n+/, "");
}

// "1..4 log" as its ends; null when it is no range. One number is a range, too.
export function parseRange(said: string): [number, number] | null {
  const [, low, high] = /^(\d+)(?:\.\.(\d+))?(?:\s+log)?$/.exec(said) ?? [];
  if (low === undefined) return null;
  return [Number(low), Number(high ?? low)];
}

export function rangeText(low: number, high: number, log: boolean): string {
  return low === high ? String(low) : `${low}..${high}${log ? " log" : ""}`;
}

// ---- more of it ----

export type More = { budget_s?: number; trials?: number };

// What to propose for a search that is at its end: as much again of what came to its end.
export function usualMore(spec: Partial<SearchSpec>, done?: Pick<SearchProgress, "trials">): More {
  const more: More = {};
  const hadTrials = spec.trials !== undefined && spec.trials > 0 && (done?.trials ?? 0) >= spec.trials;
  if (spec.trials && hadTrials) more.trials = 2 * spec.trials;
  if (!hadTrials) more.budget_s = spec.budget_s || 600;
  return more;
}

// ---- as a command ----

// What is as usual is left out; the space is a file of its own there.
export function searchCommand(spec: Partial<SearchSpec>): string {
  const columns = Object.entries(spec.columns ?? {}).map(([name, kind]) => `${name}=${kind}`);
  const other = <T>(value: T | undefined, usual: T): T | undefined => (value === usual ? undefined : value);
  const options: [string, string | number | undefined][] = [
    ["--target", spec.target],
    ["--columns", columns.join(",")],
    ["--dialect", spec.dialect],
    ["--budget", spec.budget_s ? `${spec.budget_s}s` : undefined],
    ["--trials", spec.trials || undefined],
    ["--metric", spec.metric],
    ["--problem", spec.problem],
    ["--space", spec.space ? "space.txt" : undefined],
    ["--scheduler", other(spec.scheduler, "model")],
    ["--folds", spec.folds || undefined],
    ["--valid", spec.valid || undefined],
    ["--test-share", other(spec.test_share, 0.2)],
    ["--time", spec.time_column],
    ["--epochs", spec.epochs || undefined],
    ["--seed", other(spec.seed, 1)],
  ];
  const given = options.filter(([, value]) => value !== undefined && value !== "");
  const words = given.map(([name, value]) => `${name} ${shellWord(String(value))}`);
  return ["shoal search", shellWord(`${spec.data ?? "data"}.csv`), ...words].join(" ");
}
