import assert from "node:assert/strict";
import { test } from "node:test";
import { shareDone } from "../src/job_shape";
import { linkToJob } from "../src/link";
import { routeOf } from "../src/routes";
import { lessonText } from "../src/search_insight";
import { timeUnit } from "../src/search_plots";
import { inputColumns, rowOf } from "../src/search_predict";
import { barHeights, rangeText as valuesRange, valuesText } from "../src/search_small";
import {
  dialectText,
  dialectWord,
  isStaged,
  metricText,
  parseDialect,
  parseRange,
  problemOf,
  problemText,
  rangeText,
  schedulers,
  schedulerText,
  searchCommand,
  searchScores,
  spaceLine,
  usualMore,
  withSpaceLine,
} from "../src/search_spec";
import type { Profile, TableColumn } from "../src/search_types";

function column(name: string, more: Partial<TableColumn>): TableColumn {
  return {
    name,
    kind: "number",
    guessed: "number",
    used: true,
    missing: 0,
    distinct: 100,
    warning: "",
    ...more,
  };
}

test("metrics are written as people write them", () => {
  assert.deepEqual(["accuracy", "rmse", "r2", "log-loss"].map(metricText), [
    "accuracy",
    "RMSE",
    "R²",
    "log loss",
  ]);
});

test("every way to choose trials has words, and stages where there are some", () => {
  for (const [name] of schedulers) assert.notEqual(schedulerText(name), name);
  const staged = schedulers.map(([name]) => name).filter((scheduler) => isStaged({ scheduler }));
  assert.deepEqual(staged, ["model", "halving"]);
  assert.ok(isStaged({})); // as usual
});

test("the problem follows from the target", () => {
  assert.equal(problemOf(column("y", { kind: "category", distinct: 2 })), "binary");
  assert.equal(problemOf(column("y", { kind: "category", distinct: 300 })), "multiclass");
  assert.equal(problemOf(column("y", { distinct: 2, min: 0, max: 1, quartiles: [0, 0, 1] })), "binary");
  assert.equal(problemOf(column("y", { distinct: 7, min: 3, max: 9, quartiles: [5, 6, 7] })), "multiclass");
  assert.equal(problemOf(column("y", { distinct: 7, min: 0.5, max: 9 })), "regression");
  assert.equal(problemOf(column("y", { distinct: 21, min: 0, max: 20 })), "regression");
  assert.match(problemText(column("y", { kind: "category", distinct: 5 })), /^One of 5 classes/);
});

test("dialects become words and back", () => {
  const said = { delimiter: "semicolon", header: "no" };
  assert.equal(dialectText(said), "delimiter semicolon header no");
  assert.deepEqual(parseDialect("delimiter semicolon  header no"), said);
  assert.equal(dialectText({}), "");
  const found = { encoding: "latin-1", delimiter: "\t", decimal: ",", comment: "", header: true };
  assert.deepEqual(
    ["delimiter", "decimal", "encoding", "header"].map((part) => dialectWord(found, part)),
    ["tab", "comma", "latin-1", "yes"],
  );
});

test("a control changes its own line of the space, and nothing else", () => {
  const text = "# mine\nlayers 1..3 # few\nrate 1e-4..1e-2 log";
  assert.equal(spaceLine(text, "layers"), "1..3");
  assert.equal(spaceLine(text, "width"), "");
  const changed = withSpaceLine(text, "layers", "2..5");
  assert.equal(spaceLine(changed, "layers"), "2..5");
  assert.equal(spaceLine(changed, "rate"), "1e-4..1e-2 log");
  assert.ok(changed.startsWith("# mine\n"));
  assert.equal(withSpaceLine(changed, "layers", ""), "# mine\nrate 1e-4..1e-2 log");
  assert.equal(withSpaceLine("", "width", "16..64 log").trim().split(/\s+/).join(" "), "width 16..64 log");
});

test("ranges are read and written", () => {
  assert.deepEqual(parseRange("1..4"), [1, 4]);
  assert.deepEqual(parseRange("32..512 log"), [32, 512]);
  assert.deepEqual(parseRange("3"), [3, 3]);
  for (const text of ["", "1 2 3", "a..b", "1..2..3"]) assert.equal(parseRange(text), null, text);
  assert.equal(rangeText(3, 3, true), "3");
  assert.equal(rangeText(32, 512, true), "32..512 log");
});

test("a search that ended is offered more of what came to its end", () => {
  assert.deepEqual(usualMore({ trials: 24, budget_s: 600 }, { trials: 24 }), { trials: 48 });
  assert.deepEqual(usualMore({ trials: 24, budget_s: 90 }, { trials: 7 }), { budget_s: 90 });
  assert.deepEqual(usualMore({ trials: 0, budget_s: 90 }, { trials: 7 }), { budget_s: 90 });
  assert.deepEqual(usualMore({}), { budget_s: 600 });
});

test("the same search as a command, without what is as usual", () => {
  const usual = { scheduler: "model", test_share: 0.2, folds: 0, epochs: 0, trials: 0, seed: 1, columns: {} };
  assert.equal(
    searchCommand({ ...usual, data: "titanic", target: "Survived", budget_s: 600 }),
    "shoal search titanic.csv --target Survived --budget 600s",
  );
  assert.equal(
    searchCommand({
      data: "houses",
      target: "the price",
      columns: { zip: "category", id: "skip" },
      trials: 50,
      test_share: 0,
      space: "layers 1..2",
    }),
    "shoal search houses.csv --target 'the price' --columns zip=category,id=skip --trials 50 " +
      "--space space.txt --test-share 0",
  );
});

const profile: Profile = {
  file: "t.csv",
  dialect: { encoding: "utf-8", delimiter: ",", decimal: ".", comment: "", header: true },
  rows: 10,
  ragged: 0,
  ragged_line: 0,
  columns: [
    column("id", { kind: "identifier", used: false }),
    column("age", {}),
    column("zip", {}),
    column("y", { kind: "category" }),
  ],
};

test("a form asks for the columns that the model learns from", () => {
  const names = (columns: Record<string, string>): string[] =>
    inputColumns(profile, { target: "y", columns }).map((one) => one.name);
  assert.deepEqual(names({}), ["age", "zip"]);
  assert.deepEqual(names({ id: "category", zip: "skip" }), ["id", "age"]);
});

test("a row has numbers as numbers, and null where nothing was typed", () => {
  assert.deepEqual(
    rowOf([
      ["age", "number", " 39 "],
      ["zip", "category", "01234"],
      ["fare", "number", ""],
      ["size", "number", "5 kg"],
    ]),
    { age: 39, zip: "01234", fare: null, size: "5 kg" },
  );
});

test("small pictures show what is rare, too", () => {
  assert.deepEqual(barHeights([4, 1, 0]), [1, 0.5, 0]);
  assert.deepEqual(barHeights([0, 0]), [0, 0]);
  assert.equal(
    valuesText(column("x", { kind: "category", categories: ["a", "b"], counts: [6, 4] }), 10),
    "a 60%, b 40%",
  );
  assert.equal(valuesRange(column("x", { kind: "date", min: 0, max: 86_400 })), "1970-01-01 to 1970-01-02");
});

test("lessons are sentences, in whichever way they come", () => {
  assert.equal(lessonText("wider than 256 brings nothing here"), "Wider than 256 brings nothing here.");
  assert.equal(lessonText({ text: "Relu is best." }), "Relu is best.");
});

test("times are told in the unit that suits them", () => {
  assert.deepEqual(
    [10, 600, 100_000].map((s) => timeUnit(s).name),
    ["seconds", "minutes", "hours"],
  );
});

test("paths lead to the page that searches", () => {
  assert.deepEqual(routeOf("/search"), { page: "search", from: null });
  assert.deepEqual(routeOf("/search", "?from=7"), { page: "search", from: 7 });
  assert.deepEqual(routeOf("/search/x"), { page: "missing" });
});

test("a key leads straight to its search", () => {
  const token = "AbCdEfGhIjKlMnOpQrSt-_";
  assert.equal(linkToJob("http://h:1", token, null, "", 7), `http://h:1/jobs/7#t=${token}`);
  assert.equal(
    linkToJob("http://127.0.0.1:1", token, null, `http://h:1/#t=${token}`, 7),
    `http://h:1/jobs/7#t=${token}`,
  );
});

test("how much of a search is done", () => {
  const search = {
    phase: "tries" as const,
    share: null,
    spent_s: 0,
    left_s: null,
    trials: 0,
    units: 0,
    best: 0,
    best_score: null,
    metric: "",
    higher_is_better: true,
  };
  assert.equal(shareDone({ state: "running", search }), 0);
  assert.equal(shareDone({ state: "running", search: { ...search, share: 1.2 } }), 1);
  assert.equal(shareDone({ state: "finished", search }), 1);
});

test("a search is known by its model's score on the test rows, once there is one", () => {
  const found = { best: 3, best_score: 0.791, metric: "accuracy" };
  const running = searchScores({ ...found, phase: "tries", test_score: null });
  assert.deepEqual(running.main, {
    score: 0.791,
    name: "Validation accuracy of the best trial so far",
    short: "validation",
  });
  assert.equal(running.beside, null);
  const ended = searchScores({ ...found, phase: "ended", test_score: 0.715 });
  assert.deepEqual(ended.main, { score: 0.715, name: "Test accuracy of the model", short: "test" });
  assert.equal(ended.beside?.name, "Validation accuracy of the best trial");
  assert.equal(ended.beside?.score, 0.791);
  // One that goes on has the test of the model before; one without test rows has none.
  assert.equal(searchScores({ ...found, phase: "tries", test_score: 0.715 }).main.score, 0.791);
  assert.equal(searchScores({ ...found, phase: "ended" }).main.name, "Validation accuracy of the best trial");
  assert.equal(searchScores({ ...found, best: 0, phase: "reads" }).main.score, null);
});
