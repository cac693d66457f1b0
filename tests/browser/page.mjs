// page.mjs: the web page in a real browser, with a real server and two volunteers.
//
//   node page.mjs SHOAL [FOLDER]
//
// Hosts LeNet-5 on Fashion-MNIST with the page's sliders, watches both volunteers contribute, stops and resumes
// it, and downloads a model that must score 0.88 or more. Then hosts another on data that no volunteer has, to see
// them get it from each other. Pictures of every page go to FOLDER ("browser" beside SHOAL by default), and one of
// what was there when something failed.

import { chromium } from "playwright-core";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { Processes } from "./processes.mjs";

const deadlineMs = 540_000; // for all of it
const stepMs = 60_000; // for anything that is quick, on a machine that is busy with other things
const trainMs = 360_000;
const accuracyMin = 0.88;
const volunteers = ["desk", "laptop"];
const sizes = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };
const colours = ["light", "dark"];

const program = process.argv[2];
if (!program) {
  console.error("usage: node page.mjs SHOAL [FOLDER]");
  process.exit(2);
}
const pictures = process.argv[3] ?? path.join(path.dirname(program), "browser");
const began = Date.now();

function passed(text) {
  console.log(`ok  ${((Date.now() - began) / 1000).toFixed(1).padStart(5)} s  ${text}`);
}

function findBrowser() {
  const named = process.env.CHROMIUM ? [process.env.CHROMIUM] : [];
  const folders = (process.env.PATH ?? "").split(":");
  const found = [...named, ...folders.map((folder) => path.join(folder, "chromium"))].find((file) =>
    fs.existsSync(file),
  );
  if (!found) throw new Error("there is no chromium: 'tools/deps test' installs it, or name one in CHROMIUM");
  return found;
}

// ---- what must never happen ----

function watch(page, url, wrongs) {
  page.on("console", (message) => {
    if (message.type() === "error") wrongs.push(`the console says: ${message.text()}`);
  });
  page.on("pageerror", (error) => wrongs.push(`an error in the page: ${error.message}`));
  page.on("request", (request) => {
    const asked = new URL(request.url());
    if (asked.protocol.startsWith("http") && asked.origin !== url)
      wrongs.push(`a request to ${asked.origin}`);
  });
}

// ---- pictures ----

async function drawn(page) {
  await page.evaluate(() => document.fonts.ready);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

async function picture(page, name) {
  await drawn(page);
  await page.screenshot({ path: path.join(pictures, `${name}.png`), animations: "disabled" });
}

// Those of an earlier run, and nothing else that somebody keeps there.
function removePictures() {
  const own = /^(host|job|overview|work|access|running|swarm|failed)(-desktop|-phone)?(-light|-dark)?\.png$/;
  for (const name of fs.readdirSync(pictures)) if (own.test(name)) fs.rmSync(path.join(pictures, name));
}

async function look(page, size, colour) {
  await page.setViewportSize(sizes[size]);
  await page.emulateMedia({ colorScheme: colour });
  await page.evaluate(() => scrollTo(0, 0));
}

// Makes the window as high as what is in it: what sticks to its edge should not lie across the picture.
async function heighten(page) {
  await drawn(page);
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  await page.setViewportSize({ ...page.viewportSize(), height });
}

// The whole page, in every size and colour.
async function pictureAll(page, name) {
  for (const size of Object.keys(sizes)) {
    for (const colour of colours) {
      await look(page, size, colour);
      await heighten(page);
      await picture(page, `${name}-${size}-${colour}`);
    }
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${name} is ${over} pixels too wide for a ${size}`);
  }
  await look(page, "desktop", "light");
  passed(`pictures of ${name}`);
}

// ---- the keyboard ----

// Presses Tab until the focus is on it.
async function tabTo(page, selector) {
  for (let i = 0; i < 200; i++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted), selector)) return;
  }
  throw new Error(`Tab does not lead to ${selector}`);
}

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
  await page.fill("textarea[name=model]", lines.join("\n"));
  await page.waitForSelector(".verdict.bad");
  assert.match(await page.textContent(".verdict"), new RegExp(`^Line ${at + 1}, .*tanhh`));
  assert.equal(await page.textContent(".numbers .bad"), String(at + 1));
  await page.fill("textarea[name=model]", text);
  await page.waitForSelector(".verdict:not(.bad)");
  passed("a wrong word in a model is marked on its line");
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
  await pictureAll(page, "host");
  await tabTo(page, "button[type=submit]");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Start");
  const asked = page.waitForRequest((request) => request.method() === "POST" && /\/jobs$/.test(request.url()));
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
  await page.click(".pagehead button:text-is('Stop')");
  await page.waitForSelector(".pagehead .chip.stopped");
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
  await page.waitForFunction(isFar, null, { timeout: trainMs });
  for (const size of Object.keys(sizes)) {
    await look(page, size, "light");
    await picture(page, `running-${size}`);
  }
  await look(page, "desktop", "light");
  passed("pictures of the running job");
}

async function waitForEnd(page) {
  await page.waitForSelector(".pagehead .chip:is(.finished, .failed)", { timeout: trainMs });
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
  await pictureAll(page, "job");
  await page.click("nav >> text=Overview");
  await page.waitForSelector("text=lenet5 on fashion-mnist");
  await pictureAll(page, "overview");
  await page.click("nav >> text=Work");
  await page.waitForSelector(".qr");
  await pictureAll(page, "work");
  await page.click("nav >> text=Access");
  await page.click("button:text-is('Make an invitation')");
  await page.locator(".tablebox", { hasText: "Nobody is banned." }).waitFor();
  await page.waitForSelector(".qr");
  assert.match(await page.textContent(".sharetext code"), /^shoal work .*#t=[\w-]{22}/);
  passed("an invitation is made");
  await pictureAll(page, "access");
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
  await page.selectOption("select[name=model-name]", "mlp-mnist");
  await page.selectOption("select[name=data]", "stripes");
  await page.locator(".verdict", { hasText: "No mistakes" }).waitFor();
  await page.fill("input[name=epochs]", "1000");
  await page.fill("input[name=workers_min]", "2");
  await page.click("summary:text-is('Advanced')");
  await page.selectOption("select[name=shuffle]", "all");
  await page.selectOption("select[name=rule]", "median");
  await page.uncheck("input[name=guard]");
  const asked = page.waitForRequest((request) => request.method() === "POST" && /\/jobs$/.test(request.url()));
  await page.click("button[type=submit]");
  const { shuffle, rule, guard } = (await asked).postDataJSON();
  assert.deepEqual({ shuffle, rule, guard }, { shuffle: "all", rule: "median", guard: false });
  await page.waitForURL(/\/jobs\/2$/);
  passed("a job with a shuffle, a rule and without audits is hosted");
}

// Who has which parts of the data, as a picture and as a table, which opens by keyboard.
async function seeSwarm(page) {
  const swarm = page.locator(".card", { has: page.locator(".swarmgrid") });
  const said = /^The server sent \d.* \(\d.* cop(y|ies)\), members received \d.*, [1-9].*% of it from each other\.$/;
  await swarm.locator("p", { hasText: said }).waitFor();
  await swarm.locator("summary").focus();
  await page.keyboard.press("Enter");
  for (const name of volunteers) await swarm.locator("tr", { hasText: name }).first().waitFor();
  for (const size of Object.keys(sizes))
    for (const colour of colours) {
      await look(page, size, colour);
      await drawn(page);
      await swarm.screenshot({ path: path.join(pictures, `swarm-${size}-${colour}.png`) });
    }
  await look(page, "desktop", "light");
  passed(await swarm.locator("p").first().textContent());
  await page.click(".pagehead button:text-is('Stop')");
  await page.waitForSelector(".pagehead .chip.stopped");
  assert.ok(await swarm.isVisible(), "the swarm of a job that was stopped is not shown any more");
}

async function testPage(page, url, processes, wrongs) {
  await seeVolunteers(page, url);
  await writeWrongModel(page);
  await enterWrongNumber(page);
  await host(page);
  await stopAndResume(page);
  await pictureRunning(page);
  await waitForEnd(page);
  await downloadAll(page, processes);
  await scoreModel(processes);
  await pictureOthers(page);
  await hostStripes(page, url);
  await seeSwarm(page);
  assert.deepEqual(wrongs, []);
  passed("no error in the page or its console, no request to another host");
}

async function main() {
  fs.mkdirSync(pictures, { recursive: true });
  removePictures();
  const processes = new Processes(program);
  let browser = null;
  let page = null;
  const wrongs = [];
  const tooLate = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`not done within ${deadlineMs / 1000} s`)), deadlineMs).unref();
  });
  try {
    // Chromium's own sandbox does not work for root.
    const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    browser = await chromium.launch({ executablePath: findBrowser(), args, timeout: stepMs });
    const url = await processes.serve();
    for (const name of volunteers) processes.work(url, name);
    page = await browser.newPage({ viewport: sizes.desktop, colorScheme: "light", locale: "en-GB" });
    page.setDefaultTimeout(stepMs);
    watch(page, url, wrongs);
    await Promise.race([testPage(page, url, processes, wrongs), tooLate]);
    return 0;
  } catch (error) {
    console.error(`FAILED: ${error.stack ?? error}`);
    for (const wrong of wrongs) console.error(`        ${wrong}`);
    for (const words of processes.lastWords()) console.error(words);
    const shot = path.join(pictures, "failed.png");
    await page?.screenshot({ path: shot, fullPage: true }).then(
      () => console.error(`see ${shot}`),
      () => undefined,
    );
    return 1;
  } finally {
    await browser?.close();
    await processes.end();
  }
}

process.exit(await main());
