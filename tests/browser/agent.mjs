// agent.mjs: agents in a real browser, with a real server and two volunteers.
//
//   node agent.mjs SHOAL [FOLDER]
//
// Hosts CartPole from the form, watches it learn and play, goes back to an earlier checkpoint, downloads the
// agent when it is solved and has the program play it; then follows one that learns for longer, stops it,
// goes on with it and deletes it. Pictures go to FOLDER ("browser" beside SHOAL by default).

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { drawn, newPage, passed, patienceMs, Pictures, run, tabTo, watch, whileItMoves } from "./browser.mjs";

const volunteers = ["desk", "laptop"];
const solvedAt = 475;

const program = process.argv[2];
if (!program) {
  console.error("usage: node agent.mjs SHOAL [FOLDER]");
  process.exit(2);
}
const pictures = new Pictures(
  process.argv[3] ?? path.join(path.dirname(program), "browser"),
  ["agent", "agent-job", "agent-live", "agent-overview", "agent-failed"],
  600,
);

const start = (page) => page.click("button[type=submit]:text-is('Start')");
const chip = (page, state) =>
  whileItMoves(page, () => page.waitForSelector(`.pagehead .chip.${state}`));
const figure = (page, name) =>
  page.locator(".figures > div", { has: page.locator(`dt:text-is('${name}')`) }).locator("dd:not(.below)");

// ---- the form ----

// The server refuses what is wrong with 422, which browsers write into the console.
async function refused(wrongs, work) {
  const before = wrongs.length;
  await work();
  const others = wrongs.splice(before).filter((wrong) => !/status of 422/.test(wrong));
  wrongs.push(...others);
}

async function fillForm(page, url, wrongs) {
  await page.goto(url);
  await page.click("nav >> text=Agent");
  const names = page.locator(".env .envname");
  await names.first().waitFor();
  const longest = names.filter({ hasText: "MountainCarContinuous-v0" });
  assert.equal(await longest.locator("wbr").count(), 3, "it is broken within a word where there is no room");
  assert.ok((await names.count()) >= 7, "some environments are missing");
  // By keyboard, as radio buttons go: the arrows choose.
  await tabTo(page, "input[name=env]");
  assert.equal(await page.inputValue("input[name=env]:checked"), "CartPole-v1");
  await page.keyboard.press("ArrowUp");
  assert.notEqual(await page.inputValue("input[name=env]:checked"), "CartPole-v1");
  await page.locator(".env", { has: page.locator("input[value='Pendulum-v1']") }).click();
  assert.equal(await page.inputValue("select[name=algorithm]"), "sac");
  assert.equal(
    await page.locator("select[name=algorithm] option[value=dqn]").count(),
    0,
    "dqn acts by choices",
  );
  await page.locator(".env", { has: page.locator("input[value='CartPole-v1']") }).click();
  assert.equal(await page.inputValue("select[name=algorithm]"), "ppo");
  await page.locator(".hint", { hasText: "Proximal policy optimisation" }).waitFor();
  passed("environments are shown, with the algorithms that act there");

  await page.fill("input[name=minutes]", "-1");
  await start(page);
  await page.waitForSelector("input[name=minutes][aria-invalid=true]");
  await page.fill("input[name=minutes]", "60");
  await page.fill("input[name=name]", "Poles");
  await page.click("summary:text-is('Advanced')");
  await page.click("button:text-is('Add a setting')");
  await page.locator("select[aria-label='What to set']").selectOption("rate");
  await page.fill("input[aria-label='To what']", "fast");
  await refused(wrongs, async () => {
    await start(page);
    await page.waitForSelector("input[aria-label='To what'][aria-invalid=true]");
  });
  assert.match(await page.locator("fieldset .error:visible").textContent(), /fast/);
  passed("what is wrong is told beside its field, by the page and by the server");
  await page.fill("input[aria-label='To what']", "0.001");
  await pictures.takeAll(page, "agent");
}

async function host(page) {
  const asked = page.waitForRequest(
    (request) => request.method() === "POST" && /\/jobs$/.test(request.url()),
  );
  await start(page);
  const spec = (await asked).postDataJSON();
  assert.deepEqual([spec.kind, spec.env, spec.name, spec.seconds], ["agent", "CartPole-v1", "Poles", 3600]);
  assert.deepEqual(spec.settings, { rate: "0.001" });
  await page.waitForURL(/\/jobs\/\d+$/);
  passed("the training is started");
}

// ---- the agent at play ----

const stage = (page) => page.locator("canvas.stage");

// The pixels of the canvas, as one number that hardly two pictures share; how many of them are drawn on.
const look = (page, canvas = stage(page)) =>
  canvas.evaluate((element) => {
    const { data } = element.getContext("2d").getImageData(0, 0, element.width, element.height);
    let sum = 0;
    let drawn = 0;
    for (let i = 0; i < data.length; i += 4) {
      if (data[i + 3] === 0) continue;
      drawn++;
      sum = (Math.imul(sum, 31) + (data[i] << 16) + (data[i + 1] << 8) + data[i + 2] + i) | 0;
    }
    return { sum, drawn };
  });

const stepNow = async (page) =>
  Number(/step ([\d,]+)/.exec(await page.textContent(".hud"))[1].replace(",", ""));

async function seeItMove(page) {
  await stage(page).scrollIntoViewIfNeeded();
  await page.waitForFunction(() => /step [1-9]/.test(document.querySelector(".hud").textContent));
  const first = await look(page);
  assert.ok(first.drawn > 500, `only ${first.drawn} pixels of the canvas are drawn on`);
  await changes(page, stage(page), first); // between two episodes it rests for a while
}

// Waits until a canvas shows something else.
async function changes(page, canvas, before) {
  for (const end = Date.now() + patienceMs; Date.now() < end; await page.waitForTimeout(100))
    if ((await look(page, canvas)).sum !== before.sum) return;
  assert.fail("the canvas does not change");
}

async function useControls(page) {
  await page.click("button[aria-label='Pause']");
  const paused = await look(page);
  await page.waitForTimeout(300);
  assert.equal((await look(page)).sum, paused.sum, "it moves while it is paused");
  const scrub = page.locator("input[aria-label='Step of the episode']");
  await scrub.focus();
  await page.keyboard.press("Home");
  assert.equal(await stepNow(page), 0);
  await stage(page).focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await stepNow(page), 1);
  assert.match(
    await stage(page).getAttribute("aria-label"),
    /^CartPole-v1, .*: step \d+ of \d+, return \d+$/,
  );
  await scrub.focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await stepNow(page), 2);
  assert.match(await scrub.getAttribute("aria-valuetext"), /^step 2 of \d+, return 2$/);
  await stage(page).focus();
  await page.keyboard.press("Space");
  await page.waitForSelector("button[aria-label='Pause']");
  await seeItMove(page);
  passed("it pauses, goes step by step and plays on, by keyboard");

  const seed = page.locator("label:text-is('Seed') + input");
  await seed.fill("-5");
  await page.keyboard.press("Enter");
  await page.locator(".player .error", { hasText: "a whole number from 0 to 1,000,000,000" }).waitFor();
  const asked = page.waitForRequest((request) => /episode\?seed=7$/.test(request.url()));
  await seed.fill("7");
  assert.equal(await page.locator(".player .error:visible").count(), 0, "it goes on being wrong");
  await page.keyboard.press("Enter");
  await asked;
  passed("a seed that is none is told, another begins an episode");

  await page.selectOption("select[aria-label='Speed']", "4");
  const seeds = [await seed.inputValue()];
  await page.click("button:text-is('Another episode')");
  seeds.push(await seed.inputValue());
  assert.notEqual(seeds[0], seeds[1], "another episode begins like the last one");
  await page.locator(".stagetext", { hasText: /^(Ended|Out of time) after/ }).waitFor();
  await page.waitForFunction((last) => document.querySelector("input.short").value !== last, seeds[1]);
  await page.selectOption("select[aria-label='Speed']", "1");
  passed("an episode ends, it is told how, and the next one begins");
}

async function goBack(page) {
  const slider = page.locator("input[aria-label='Checkpoint']");
  await page.waitForFunction(() => Number(document.querySelector("[aria-label='Checkpoint']").max) >= 1);
  const asked = page.waitForRequest((request) => /\/checkpoints\/\d+\/episode/.test(request.url()));
  await slider.focus();
  await page.keyboard.press("Home");
  const [, first] = /checkpoints\/(\d+)\//.exec((await asked).url());
  await page.locator(".which", { hasText: "Checkpoint 1 of" }).waitFor();
  const length = () =>
    page.locator("input[aria-label='Step of the episode']").getAttribute("max").then(Number);
  await page.waitForFunction(
    (steps) =>
      document.querySelector("canvas.stage").getAttribute("aria-label").includes(`after ${steps} steps`),
    Number(first).toLocaleString("en"),
  );
  await seeItMove(page);
  const early = await length();
  // While an older one is played than the newest, one can ask for the newest, also again.
  const episodes = /\/checkpoints\/[^/]+\/episode/;
  let isHeld = true;
  await page.route(episodes, (route) => (isHeld ? undefined : route.continue()));
  await page.click("button:text-is('Newest')");
  await page.locator(".which", { hasText: /^After [\d,]+ steps?; the newest has/ }).waitFor();
  isHeld = false;
  await page.click("button:text-is('Newest')");
  await page.locator(".which", { hasText: "Newest checkpoint" }).waitFor();
  await page.unroute(episodes);
  await page.waitForFunction(
    (steps) =>
      !document.querySelector("canvas.stage").getAttribute("aria-label").includes(`after ${steps} steps`),
    Number(first).toLocaleString("en"),
  );
  await seeItMove(page);
  assert.ok((await length()) > early, "what it has learned does not show");
  passed(`an earlier checkpoint is played: ${early} steps, and ${await length()} at last`);

  await page
    .locator(".card", { has: page.locator("h2:text-is('Return of an episode')") })
    .locator(".u-over")
    .click({
      position: { x: 2, y: 100 },
    });
  await page.locator(".which", { hasText: "Checkpoint 1 of" }).waitFor();
  await page.click("button:text-is('Newest')");
  passed("a click on the curve chooses the agent of that time");
}

// ---- what is known of it ----

// Pixels of a chart that are coloured as its curve is.
const coloured = (page, title) =>
  page
    .locator(".card", { has: page.locator(`h2:has-text('${title}')`) }) // some are explained behind it
    .locator("canvas")
    .first()
    .evaluate((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4) {
        const high = Math.max(data[i], data[i + 1], data[i + 2]);
        if (data[i + 3] > 0 && high - Math.min(data[i], data[i + 1], data[i + 2]) > 60) count++;
      }
      return count;
    });

async function seeResults(page) {
  await chip(page, "finished");
  assert.match(await page.textContent(".lead"), /^Solved .* over 100 episodes/);
  assert.equal(await figure(page, `Solved, at ${solvedAt}`).textContent(), "yes");
  const [score] = /^[\d,]+/.exec(await figure(page, "Score of 100").textContent());
  assert.ok(Number(score) >= solvedAt, `solved with ${score}`);
  for (const title of ["Return of an episode", "Steps a second", "Policy lag"]) {
    const count = await coloured(page, title);
    assert.ok(count > 100 || title === "Policy lag", `the curve “${title}” has ${count} coloured pixels`);
  }
  const chart = page.locator("[aria-label^='Return of an episode:'] canvas");
  const bySteps = await look(page, chart);
  await page.click(".switch label:has-text('Time')");
  await changes(page, chart, bySteps); // over time the curve is another
  await page.click(".switch label:has-text('Steps')");
  await page.locator(".which", { hasText: /^Newest checkpoint/ }).waitFor();
  const actors = page.locator("[aria-label='Actors of this agent'] tbody tr:not(.spacer)");
  await actors.first().waitFor();
  const who = await actors.evaluateAll((rows) => rows.map((row) => row.cells[0].textContent));
  assert.ok(
    who.every((name) => volunteers.includes(name)),
    `${who} have played`,
  );
  passed(await page.textContent(".lead"));
  await seeOnPhone(page);
}

// Who has played how much is seen without moving the table.
async function seeOnPhone(page) {
  const before = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 800 });
  const table = page.locator("[aria-label='Actors of this agent']").first();
  const right = async (one) => {
    const box = await one.boundingBox();
    return box.x + box.width;
  };
  for (const title of ["Actor", "Share", "Now", "Steps"]) {
    const head = table.locator("th", { hasText: new RegExp(`^${title}$`) });
    assert.ok((await right(head)) <= (await right(table)) + 1, `${title} is outside the picture on a phone`);
    assert.ok(
      await head.evaluate((cell) => cell.scrollWidth <= cell.clientWidth),
      `${title} is cut on a phone`,
    );
  }
  await page.setViewportSize(before);
  passed("a phone shows who plays, and how much");
}

async function takeAway(page, processes) {
  const save = async (work, name) => {
    const waiting = page.waitForEvent("download");
    await work();
    const download = await waiting;
    await download.saveAs(processes.file(name));
    return download.suggestedFilename();
  };
  const name = await save(() => page.click("button:text-is('Download model')"), "Poles.safetensors");
  assert.equal(name, "Poles.safetensors");
  const onnx = await save(() => page.click("button:text-is('Download ONNX')"), "Poles.onnx");
  assert.equal(onnx, "Poles.onnx");
  assert.ok(fs.readFileSync(processes.file("Poles.onnx")).includes("observation"), "the ONNX file is none");
  await page.locator("p", { hasText: "A training like it on one machine" }).waitFor();
  const checkpoint = await save(() => page.click(".chooser button:text-is('Download')"), "one.safetensors");
  assert.match(checkpoint, /^Poles-\d+\.safetensors$/);
  const file = processes.file("Poles.safetensors");
  const { return_mean: mean } = await processes.askLast("agent", "play", file, "--episodes", "20");
  assert.ok(mean >= solvedAt - 25, `shoal agent play comes to ${mean}`);
  passed(`downloaded ${name} and ${checkpoint}; shoal agent play comes to ${mean}`);
}

async function seeOverview(page, url) {
  await page.goto(url);
  const row = page.locator("[aria-label='Jobs'] tr", { hasText: "Poles" });
  await row.locator("span", { hasText: "CartPole-v1 · ppo" }).waitFor();
  await row.locator("td", { hasText: /^\d+, solved$/ }).waitFor();
  await pictures.takeAll(page, "agent-overview");
  await row.locator("a").click();
  await page.waitForURL(/\/jobs\/\d+$/);
}

// ---- one that takes longer ----

async function followLonger(page) {
  await page.click("a:text-is('Train one like it')");
  await page.waitForSelector("input[name=env]:checked");
  assert.equal(
    await page.inputValue("input[aria-label='To what']"),
    "0.001",
    "its settings are not taken over",
  );
  await page.locator(".env", { has: page.locator("input[value='Snake-v0']") }).click();
  await page.click("button[aria-label='Remove this setting']");
  await page.uncheck("input[name=until_solved]");
  await page.fill("input[name=name]", "Snakes");
  await start(page);
  await page.waitForURL(/\/jobs\/\d+$/);
  await chip(page, "running");
  const steps = async () => (await figure(page, "Steps").textContent()).trim();
  await page.waitForFunction(
    () => {
      const [, shown] = document.querySelectorAll(".figures dd");
      return shown && document.querySelectorAll(".chart canvas").length >= 3;
    },
  );
  const before = await steps();
  await page.waitForFunction(
    (was) =>
      [...document.querySelectorAll(".figures > div")].some(
        (one) => one.firstChild.textContent === "Steps" && one.lastChild.textContent !== was,
      ),
    before,
  );
  await seeItMove(page);
  passed(`curves and canvas are live: ${before} steps, then ${await steps()}`);
  await pictures.takeAll(page, "agent-live");
}

// The answer to Stop was written before the end that the stream tells, and comes after it.
async function stopWithLateAnswer(page) {
  const asked = /\/jobs\/\d+\/stop$/;
  let answer;
  const held = new Promise((resolve) => (answer = resolve));
  await page.route(asked, async (route) => {
    const response = await route.fetch();
    await held;
    await route.fulfill({ response });
  });
  const answered = page.waitForResponse(asked);
  await page.click("button:text-is('Stop')");
  await chip(page, "stopped");
  answer();
  await (await answered).finished();
  await drawn(page);
  await drawn(page);
  assert.equal(await page.locator(".pagehead .chip.stopped").count(), 1, "an old answer is shown as the newest");
  await page.unroute(asked);
}

// Deleting waits for an episode that was asked for. A deleted job has none, and the browser would write that failure
// into its console.
async function deleteWhileAsking(page) {
  const episode = /\/episode\?/;
  const jobs = /\/jobs\/\d+$/;
  let goOn;
  const held = new Promise((resolve) => (goOn = resolve));
  await page.route(episode, async (route) => {
    await held;
    await route.continue();
  });
  const answered = page.waitForResponse(episode);
  const asked = page.waitForRequest(episode);
  await page.click("button:text-is('Another episode')");
  await asked;
  await page.route(jobs, async (route) => {
    if (route.request().method() !== "DELETE") return await route.fallback();
    const response = await route.fetch();
    goOn();
    await answered;
    await route.fulfill({ response });
  });
  await page.click("button:text-is('Delete')");
  await page.click("dialog button:text-is('Delete')");
  await page.waitForTimeout(300);
  goOn();
  await page.waitForURL((address) => address.pathname === "/");
  await page.unroute(episode);
  await page.unroute(jobs);
}

async function stopAndGoOn(page) {
  await stopWithLateAnswer(page);
  await seeItMove(page);
  await page.click(".pagehead button:text-is('Resume')");
  await page.click("dialog button:text-is('Resume')");
  await chip(page, "running");
  await page.click("button:text-is('Stop')");
  await chip(page, "stopped");
  passed("it is stopped, goes on, and is stopped again");
  await deleteWhileAsking(page);
  await page.locator("[aria-label='Jobs'] tr", { hasText: "Poles" }).waitFor();
  assert.equal(await page.locator("[aria-label='Jobs'] tr", { hasText: "Snakes" }).count(), 0);
  passed("it is deleted");
}

// ---- others ----

// Whoever has the key may watch, and nothing else.
async function visit(browser, page, url, wrongs) {
  await page.click("summary:has-text('Share what it does')");
  await page.fill("input[name=key-name]", "the team");
  await page.click("button:text-is('Make a key')");
  const link = await page.locator(".share code").textContent();
  const visitor = await newPage(browser);
  watch(visitor, url, wrongs);
  await visitor.goto(link);
  await visitor.waitForSelector("h1:text-is('Poles')");
  await seeItMove(visitor);
  for (const text of ["Stop", "Train on", "Resume", "Delete", "Train one like it"])
    assert.equal(await visitor.locator(`.pagehead :text-is('${text}')`).count(), 0, `a visitor may ${text}`);
  assert.equal(await visitor.locator("nav >> text=Agent").count(), 0, "a visitor may train agents");
  await visitor.close();
  passed("with a key others watch it play, and can change nothing");
}

// Who prefers that nothing moves decides when it does.
async function keepStill(browser, url, wrongs) {
  const page = await newPage(browser, { reducedMotion: "reduce", deviceScaleFactor: 2 });
  watch(page, url, wrongs);
  await page.goto(url);
  await page.locator("[aria-label='Jobs'] a", { hasText: "Poles" }).click();
  await page.waitForFunction(() => /step 0/.test(document.querySelector(".hud")?.textContent ?? ""));
  await page.waitForTimeout(300);
  assert.equal(await stepNow(page), 0, "it plays by itself");
  await page.click("button[aria-label='Play']");
  await seeItMove(page);
  const ratio = await stage(page).evaluate((canvas) => canvas.width / canvas.clientWidth);
  assert.ok(Math.abs(ratio - 2) < 0.01, `${ratio} pixels of the canvas where the screen has 2`);
  await page.close();
  passed("nothing moves by itself where that is not wanted; fine screens get a fine picture");
}

async function testAgent({ browser, page, url, processes, wrongs }) {
  await fillForm(page, url, wrongs);
  await host(page);
  await seeItMove(page);
  passed("the agent plays on the canvas");
  await seeResults(page);
  await useControls(page);
  await goBack(page);
  await pictures.takeAll(page, "agent-job");
  await takeAway(page, processes);
  await visit(browser, page, url, wrongs);
  await seeOverview(page, url);
  await followLonger(page);
  await stopAndGoOn(page);
  await keepStill(browser, url, wrongs);
}

process.exit(
  await run({ program, volunteers, pictures, failedName: "agent-failed", test: testAgent }),
);
