import assert from "node:assert/strict";
import { test } from "node:test";
import { areImages, guessKind, guessName, sentName } from "../src/upload";

test("files tell what they are and what to call them", () => {
  assert.equal(guessKind(["train.CSV.gz"]), "csv");
  assert.equal(guessKind(["data_batch_1.bin"]), "cifar");
  assert.equal(guessKind(["train-images-idx3-ubyte.gz"]), "idx");
  assert.equal(guessKind(["novel.txt"]), "text");
  assert.ok(areImages(["about.txt", "Cat.JPG"]) && areImages(["a.png"]) && !areImages(["png.csv"]));
  assert.equal(guessName("Wine Quality (red).csv"), "wine-quality-red");
  assert.equal(guessName("鱼.csv"), "data");
  assert.equal(sentName("Wine Quality (red).csv"), "Wine-Quality-red-.csv");
  assert.match(sentName(`${"x -.".repeat(60)}.csv`), /^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/);
});
