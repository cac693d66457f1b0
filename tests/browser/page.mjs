// page.mjs: the web page in a real browser, with a real server and two volunteers.
//
//   node page.mjs SHOAL [FOLDER]
//
// Hosts LeNet-5 on Fashion-MNIST with the page's sliders, watches both volunteers contribute, stops and resumes
// it, and downloads a model that must score 0.88 or more. Then hosts another on data that no volunteer has, to see
// them get it from each other. Pictures of every page go to FOLDER ("browser" beside SHOAL by default), and one of
// what was there when something failed.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { colours, drawn, holdBack, look, passed, Pictures, run, sizes, tabTo, whileItMoves } from "./browser.mjs";

const accuracyMin = 0.88;
const volunteers = ["desk", "laptop"];

const program = process.argv[2];
if (!program) {
  console.error("usage: node page.mjs SHOAL [FOLDER]");
  process.exit(2);
}
const pictures = new Pictures(process.argv[3] ?? path.join(path.dirname(program), "browser"), [
  "host",
  "job",
  "overview",
  "work",
  "access",
  "running",
  "swarm",
  "failed",
]);

// ---- the keyboard ----

async function slideTo(page, name, wanted) {
  await tabTo(page, `input[type=range][data-name=${name}]`);
  const value = async () => Number(await page.inputValue(`input[name=${name}]`));
  for (let i = 0; i < 50 && (await value()) !== wanted; i++)
    await page.keyboard.press((await value()) < wanted ? "ArrowRight" : "ArrowLeft");
  assert.equal(await value(), wanted, `the slider ${name}`);
}

// ---- the steps ----

async function seeVolunteers(page, url) {
  await page.goto(url);
  for (const name of volunteers) await page.locator("tr", { hasText: name }).first().waitFor();
  passed("the overview lists both volunteers");
}

async function writeWrongModel(page) {
  await page.click("nav >> text=Host");
  await page.waitForSelector(".layer");
  const text = await page.inputValue("textarea[name=model]");
  const lines = text.split("\n");
  const at = lines.findIndex((line) => line.startsWith("conv"));
  lines[at] = "conv 20 5x5 tanhh";
  const slow = await holdBack(page, "**/models/check");
  await page.fill("textarea[name=model]", lines.join("\n"));
  await page.click("button[type=submit]");
  slow.release();
  await page.waitForSelector(".verdict.bad");
  await page.waitForSelector("textarea[name=model]:focus");
  await page.waitForSelector("button[type=submit]:text-is('Start')");
  assert.match(page.url(), /\/host$/);
  await slow.end();
  assert.match(await page.textContent(".verdict"), new RegExp(`^Line ${at + 1}, .*tanhh`));
  assert.equal(await page.textContent(".numbers .bad"), String(at + 1));
  await page.fill("textarea[name=model]", text);
  await page.waitForSelector(".verdict:not(.bad)");
  passed("a wrong word in a model is marked on its line, and nothing starts with it");
}

// A model for other images is told apart as one types, and nothing starts.
async function writeForeignModel(page) {
  const text = await page.inputValue("textarea[name=model]");
  await page.selectOption("select[name=data]", "fashion-mnist");
  await page.waitForSelector(".verdict:not(.bad)");
  await page.fill("textarea[name=model]", text.replace(/^input .*$/m, "input 3x32x32"));
  const sentence = "fashion-mnist has images of 1x28x28, but the model's input is 3x32x32";
  await page.locator(".verdict.bad", { hasText: sentence }).waitFor();
  await page.click("button[type=submit]");
  await page.waitForSelector("textarea[name=model]:focus");
  await page.waitForSelector("button[type=submit]:text-is('Start')");
  assert.match(page.url(), /\/host$/);
  await pictures.take(page, "host-misfit");
  await page.fill("textarea[name=model]", text);
  await page.waitForSelector(".verdict:not(.bad)");
  passed("a model that does not fit the data is refused in the form, with the sentence of shoal train");
}

// What is no number stays in its box, and no job begins with a part of it.
async function enterWrongNumber(page) {
  const box = page.locator("input[name=epochs]");
  await box.fill("6x");
  await box.blur();
  assert.equal(await box.inputValue(), "6x");
  await page.click("button[type=submit]");
  await page.waitForSelector("input[name=epochs][aria-invalid=true]:focus");
  assert.match(page.url(), /\/host$/);
  await box.fill("6");
  assert.equal(await box.getAttribute("aria-invalid"), null);
  passed("a number that is none is kept and refused");
}

// From the top of the page to the running job, by keyboard alone.
async function host(page) {
  await page.selectOption("select[name=model-name]", "lenet5");
  await page.selectOption("select[name=data]", "fashion-mnist");
  await page.locator(".verdict", { hasText: "No mistakes" }).waitFor();
  await page.focus("h1");
  await slideTo(page, "epochs", 2);
  await slideTo(page, "workers_min", 2);
  await page.click("summary:text-is('Advanced')");
  await pictures.takeAll(page, "host");
  const { optimizers } = await (await fetch(new URL("/api/v1/server", page.url()))).json();
  const offered = page.locator("select[name=optimizer] option");
  assert.deepEqual(await offered.evaluateAll((all) => all.map((one) => one.value)), ["", ...optimizers]);
  await tabTo(page, "button[type=submit]");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Start");
  const asked = page.waitForRequest(
    (request) => request.method() === "POST" && /\/jobs$/.test(request.url()),
  );
  await page.keyboard.press("Enter");
  const spec = (await asked).postDataJSON();
  for (const name of ["rule", "shuffle", "guard"]) assert.ok(!(name in spec), `${name} was sent unasked`);
  await page.waitForURL(/\/jobs\/1$/);
  await page.waitForSelector(".pagehead .chip.running");
  passed("sliders and Start work by keyboard; the job runs");
}

// How many samples a worker of the job has computed, as the table says.
function seesSamplesOf(name) {
  const rows = [...document.querySelectorAll("[aria-label='Workers of this job'] tr")];
  const at = [...rows[0].cells].findIndex((cell) => cell.textContent === "Samples");
  const row = rows.find((one) => one.cells[0]?.textContent === name);
  return row !== undefined && !["0", ""].includes(row.cells[at].textContent);
}

async function round(page) {
  const [, number] = /round ([\d,]+) of/.exec(await page.textContent(".lead")) ?? [];
  return number === undefined ? null : Number(number.replaceAll(",", ""));
}

async function stopAndResume(page) {
  for (const name of volunteers) await page.waitForFunction(seesSamplesOf, name);
  passed("both volunteers contribute");
  await page.focus(".pagehead button:text-is('Stop')");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".pagehead .chip.stopped");
  await page.waitForFunction(() => document.activeElement !== document.body); // it is not lost with Stop
  const stopped = await round(page);
  assert.ok(stopped > 0, "no round was done before the stop");
  passed(`stopped in round ${stopped}`);
  await page.click(".pagehead button:text-is('Resume')");
  await page.click("dialog[open] button:text-is('Resume')");
  await page.waitForFunction(() =>
    /round [1-9].* to go$|^Finished/.test(document.querySelector(".lead").textContent),
  );
  const resumed = await round(page);
  assert.ok(resumed === null || resumed >= stopped, `it went on from round ${resumed}, not from ${stopped}`);
  passed(`resumed${resumed === null ? "" : ` in round ${resumed}`}`);
}

// True when most of it is done.
function isFar() {
  const said = document.querySelector(".lead").textContent.replaceAll(",", "");
  const [, at, end] = /round (\d+) of (\d+)/.exec(said) ?? [];
  return said.startsWith("Finished") || Number(at) > 0.7 * Number(end);
}

// As it runs, as a visitor sees it.
async function pictureRunning(page) {
  await whileItMoves(page, () => page.waitForFunction(isFar));
  for (const size of Object.keys(sizes)) {
    await look(page, size, "light");
    await pictures.take(page, `running-${size}`);
  }
  await look(page, "desktop", "light");
  passed("pictures of the running job");
}

async function waitForEnd(page) {
  await whileItMoves(page, () => page.waitForSelector(".pagehead .chip:is(.finished, .failed)"));
  const said = await page.textContent(".lead");
  assert.match(said, /^Finished/, said);
  passed(said);
}

async function downloadAll(page, processes) {
  const files = [
    ["model", "safetensors"],
    ["ONNX", "onnx"],
    ["TensorBoard events", "events"],
  ];
  for (const [text, ending] of files) {
    const waiting = page.waitForEvent("download");
    await page.click(`button:text-is('Download ${text}'):not(:disabled)`);
    const download = await waiting;
    const file = processes.file(`lenet5.${ending}`);
    await download.saveAs(file);
    const { size } = fs.statSync(file);
    assert.ok(size > 0, `${download.suggestedFilename()} is empty`);
    passed(`downloaded ${download.suggestedFilename()}, ${size} bytes`);
  }
}

async function scoreModel(processes) {
  const { accuracy } = await processes.ask(
    "eval",
    processes.file("lenet5.safetensors"),
    "--data",
    "fashion-mnist",
  );
  assert.ok(accuracy >= accuracyMin, `shoal eval gives ${accuracy}, less than ${accuracyMin}`);
  passed(`shoal eval gives ${accuracy}`);
}

async function pictureOthers(page) {
  await pictures.takeAll(page, "job");
  await page.click("nav >> text=Overview");
  await page.waitForSelector("text=lenet5 on fashion-mnist");
  await pictures.takeAll(page, "overview");
  await page.click("nav >> text=Work");
  await page.waitForSelector(".sharetext");
  await pictures.takeAll(page, "work");
  await page.click("nav >> text=Access");
  await page.click("button:text-is('Make an invitation')");
  await page.locator(".tablebox", { hasText: "Nobody is banned." }).waitFor();
  await page.waitForSelector(".sharetext");
  assert.match(await page.textContent(".sharetext code"), /^shoal work .*#t=[\w-]{22}/);
  passed("an invitation is made");
  await pictures.takeAll(page, "access");
}

// ---- data that volunteers get from each other ----

function idx(dims, values) {
  const head = Buffer.alloc(4 + 4 * dims.length);
  head.writeUInt8(8, 2);
  head.writeUInt8(dims.length, 3);
  dims.forEach((dim, i) => head.writeUInt32BE(dim, 4 + 4 * i));
  return Buffer.concat([head, values]);
}

// Images of 28x28 of which each has a bright stripe where its label says.
function stripes(count) {
  const images = Buffer.alloc(count * 784);
  const labels = Buffer.alloc(count);
  for (let i = 0; i < count; i++) {
    labels[i] = i % 10;
    images.fill(255, i * 784 + labels[i] * 56, i * 784 + labels[i] * 56 + 28);
    images.writeUInt32LE(i, i * 784 + 780); // no two chunks are alike
  }
  return { images: idx([count, 28, 28], images), labels: idx([count], labels) };
}

async function uploadStripes(url) {
  const set = `${url}/api/v1/datasets/stripes`;
  for (const [part, count] of [
    ["train", 40_000],
    ["t10k", 1000],
  ]) {
    const { images, labels } = stripes(count);
    for (const [file, body] of [
      [`${part}-images-idx3-ubyte`, images],
      [`${part}-labels-idx1-ubyte`, labels],
    ])
      assert.equal((await fetch(`${set}/files/${file}`, { method: "PUT", body })).status, 201);
  }
  const sealed = await fetch(set, { method: "POST", body: JSON.stringify({ kind: "idx" }) });
  assert.equal(sealed.status, 201, await sealed.text());
}

async function hostStripes(page, url) {
  await uploadStripes(url);
  await page.goto(`${url}/host`);
  await page.waitForSelector(".layer");
  const checked = page.waitForResponse((answer) => /\/models\/check$/.test(answer.url()));
  await page.selectOption("select[name=model-name]", "mlp-mnist");
  await checked;
  await page.fill("input[name=epochs]", "1000");
  await page.fill("input[name=workers_min]", "2");
  await page.click("summary:text-is('Advanced')");
  await page.selectOption("select[name=shuffle]", "all");
  await page.selectOption("select[name=rule]", "median");
  await page.uncheck("input[name=guard]");
  const asked = page.waitForRequest(
    (request) => request.method() === "POST" && /\/jobs$/.test(request.url()),
  );
  // The model is checked anew for other data; Start waits for that and starts then.
  const slow = await holdBack(page, "**/models/check");
  await page.selectOption("select[name=data]", "stripes");
  await page.click("button[type=submit]");
  slow.release();
  const { data, shuffle, rule, guard } = (await asked).postDataJSON();
  assert.equal(slow.answered, 1, "a job was begun before its model was checked");
  await slow.end();
  assert.equal(data, "stripes");
  assert.deepEqual({ shuffle, rule, guard }, { shuffle: "all", rule: "median", guard: false });
  await page.waitForURL(/\/jobs\/2$/);
  passed("a job with a shuffle, a rule and without audits is hosted; Start waited for the model's check");
}

// Who has which parts of the data, as a picture and as a table, which opens by keyboard.
async function seeSwarm(page) {
  const swarm = page.locator(".card", { has: page.locator(".swarmgrid") });
  const said =
    /^The server sent \d.* \(\d.* cop(y|ies)\), members received \d.*, [1-9].*% of it from each other\.$/;
  await swarm.locator("p", { hasText: said }).waitFor();
  await swarm.locator("summary").focus();
  await page.keyboard.press("Enter");
  for (const name of volunteers) await swarm.locator("tr", { hasText: name }).first().waitFor();
  for (const size of Object.keys(sizes))
    for (const colour of colours) {
      await look(page, size, colour);
      await drawn(page);
      await swarm.screenshot({ path: pictures.file(`swarm-${size}-${colour}`) });
    }
  await look(page, "desktop", "light");
  passed(await swarm.locator("p").first().textContent());
  await page.click(".pagehead button:text-is('Stop')");
  await page.waitForSelector(".pagehead .chip.stopped");
  assert.ok(await swarm.isVisible(), "the swarm of a job that was stopped is not shown any more");
}

// What is taken for what, every class's scores, and the images that the model is most wrong about; also on the
// narrowest screen.
async function seeClasses(page) {
  const classes = page.locator(".card", { has: page.locator("h2:text-is('Class by class')") });
  await classes.locator("p", { hasText: /^On 10,000 test samples after epoch 2: accuracy 0\.\d+; / }).waitFor();
  const counts = await classes.locator(".heat tbody td").allTextContents();
  assert.equal(counts.length, 100);
  assert.equal(
    counts.reduce((sum, text) => sum + Number(text.replace(",", "") || 0), 0),
    10_000,
  );
  await classes.locator("[aria-label='Scores of every class'] tbody tr", { hasText: "trouser" }).waitFor();
  await page.waitForFunction(() => {
    const images = [...document.querySelectorAll(".wrongs img")];
    return images.length > 0 && images.every((one) => one.complete && one.naturalWidth === 28);
  });
  await page.setViewportSize({ width: 320, height: 800 });
  await drawn(page);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(over <= 0, `the classes are ${over} pixels too wide for 320`);
  await look(page, "desktop", "light");
  passed("what is taken for what, and the worst images");
}

// What failed before its first round is not resumed first: that would fail again.
async function seeHopeless(page) {
  const reason = "wine/wine.csv has 2 feature columns, but the model's input is 3: write `input 2`";
  await page.route("**/api/v1/jobs/1", async (route) => {
    const response = await route.fetch();
    const job = await response.json();
    const progress = { ...job.progress, epoch: 0, round: 0, step: 0 };
    await route.fulfill({ response, json: { ...job, state: "failed", reason, progress } });
  });
  const empty = { status: 200, contentType: "text/event-stream", body: ": nothing\n\n" };
  await page.route("**/api/v1/jobs/1/live", (route) => route.fulfill(empty));
  await page.goto(new URL("/jobs/1", page.url()).href);
  await page.locator(".page", { hasText: reason }).waitFor();
  const actions = await page.locator(".actions > *").allTextContents();
  assert.deepEqual(actions, ["Start again with changes", "Resume", "Delete"]);
  await pictures.take(page, "job-hopeless");
  await page.unrouteAll({ behavior: "ignoreErrors" });
  passed("a job that failed at once is started again with changes");
}

async function testPage({ page, url, processes }) {
  await seeVolunteers(page, url);
  await writeWrongModel(page);
  await writeForeignModel(page);
  await enterWrongNumber(page);
  await host(page);
  await stopAndResume(page);
  await pictureRunning(page);
  await waitForEnd(page);
  await seeClasses(page);
  await downloadAll(page, processes);
  await scoreModel(processes);
  await pictureOthers(page);
  await hostStripes(page, url);
  await seeSwarm(page);
  await seeHopeless(page);
}

process.exit(await run({ program, volunteers, pictures, failedName: "failed", test: testPage }));
