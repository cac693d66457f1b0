// browser.mjs: what tests of the page share: the browser, what must never happen in it, pictures, the
// keyboard, and a run that always ends.

import { chromium } from "playwright-core";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { Processes } from "./processes.mjs";

export const patienceMs = 300_000; // much longer than any step takes, on a slow machine that is busy, too
export const sizes = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };
export const colours = ["light", "dark"];
export const narrow = { width: 320, height: 640 };
export const otherHost = "shoal.test";

const began = Date.now();

export function passed(text) {
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

export function watch(page, url, wrongs) {
  page.on("console", (message) => {
    // Chromium breaks requests off when this machine gets or loses an address, whoever else sees to that; the page asks again.
    if (message.type() === "error" && !message.text().includes("net::ERR_NETWORK_CHANGED"))
      wrongs.push(`the console says: ${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => wrongs.push(`an error in the page: ${error.message}`));
  page.on("request", (request) => {
    const asked = new URL(request.url());
    if (asked.protocol.startsWith("http") && asked.origin !== url)
      wrongs.push(`a request to ${asked.origin}`);
  });
}

// ---- pictures ----

export async function drawn(page) {
  await page.evaluate(() => document.fonts.ready);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

export async function look(page, size, colour) {
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

// ---- what every page must keep ----

// Controls that who cannot see them would know nothing of.
function unnamed() {
  const kinds = "input, select, textarea, button, a[href], summary, [tabindex='0']";
  const hasText = (one) => !/^(INPUT|SELECT|TEXTAREA)$/.test(one.tagName) && one.textContent.trim() !== "";
  const hasName = (one) => one.labels?.length > 0 || one.getAttribute("aria-label") || hasText(one);
  const controls = [...document.querySelectorAll(kinds)];
  return controls.filter((one) => one.checkVisibility() && !hasName(one)).map((one) => one.outerHTML);
}

// Words that only who made it knows, and plurals of one.
const wrongWords =
  /\brungs?\b|(?<![\d.,])1 (trials|rows|columns|classes|workers|layers|weights|samples|steps|episodes|rollouts)\b/;

async function keepRules(page, name) {
  assert.deepEqual(await page.evaluate(unnamed), [], `controls of ${name} without a name`);
  const [wrong] = wrongWords.exec(await page.evaluate(() => document.body.innerText)) ?? [];
  assert.equal(wrong, undefined, `${name} says “${wrong}”`);
}

// Answers to such requests are held back, from hold() to release(), until end(). `answered` counts those that have gone out.
export async function holdBack(page, pattern) {
  let released, gate;
  const held = {
    answered: 0,
    hold: () => (gate = new Promise((done) => (released = done))),
    release: () => released(),
    end: () => page.unroute(pattern, answer),
  };
  async function answer(route) {
    await gate;
    const response = await route.fetch().catch(() => null); // null: the page has dropped it
    held.answered++;
    await (response ? route.fulfill({ response }) : route.abort()).catch(() => undefined);
  }
  held.hold();
  await page.route(pattern, answer);
  return held;
}

// Waits for what takes as long as a training does, and gives up only when the page has shown nothing new for long.
export async function whileItMoves(page, wait) {
  for (let before = null; ; ) {
    // An agent at play moves for ever.
    const shown = await page.evaluate(() =>
      document.body.innerText.replace(document.querySelector(".hud")?.innerText ?? "", ""),
    );
    const moves = shown !== before;
    before = shown;
    try {
      return await wait();
    } catch (error) {
      if (error.name !== "TimeoutError" || !moves) throw error;
    }
  }
}

// Nothing may stick out sideways on the narrowest screens that there are.
export async function fitsNarrow(page, name) {
  const before = page.viewportSize();
  await page.setViewportSize(narrow);
  await drawn(page);
  const wide = await page.evaluate(() => ({
    over: document.documentElement.scrollWidth - innerWidth,
    by: [...document.querySelectorAll("body *")]
      .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroller"))
      .slice(0, 3)
      .map((one) => one.outerHTML.slice(0, 120)),
  }));
  assert.ok(wide.over <= 0, `${name} is ${wide.over} pixels too wide for 320: ${wide.by.join(" | ")}`);
  await page.setViewportSize(before);
}

export class Pictures {
  // Removes those of an earlier run, and nothing else that somebody keeps there. settleMs: for what is
  // drawn bit by bit.
  constructor(folder, names, settleMs = 0) {
    this.folder = folder;
    this.settleMs = settleMs;
    fs.mkdirSync(folder, { recursive: true });
    const own = new RegExp(`^(${names.join("|")})(-desktop|-phone)?(-light|-dark)?\\.png$`);
    for (const name of fs.readdirSync(folder)) if (own.test(name)) fs.rmSync(path.join(folder, name));
  }

  file(name) {
    return path.join(this.folder, `${name}.png`);
  }

  async take(page, name) {
    await drawn(page);
    await page.screenshot({ path: this.file(name), animations: "disabled" });
  }

  // The whole page, in every size and colour.
  async takeAll(page, name) {
    for (const size of Object.keys(sizes)) {
      for (const colour of colours) {
        await look(page, size, colour);
        await heighten(page);
        await page.waitForTimeout(this.settleMs);
        await this.take(page, `${name}-${size}-${colour}`);
      }
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${name} is ${over} pixels too wide for a ${size}`);
    }
    await fitsNarrow(page, name);
    await look(page, "desktop", "light");
    await keepRules(page, name);
    passed(`pictures of ${name}`);
  }
}

// ---- the keyboard ----

// Presses Tab until the focus is on it.
export async function tabTo(page, selector) {
  for (let i = 0; i < 200; i++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted), selector)) return;
  }
  throw new Error(`Tab does not lead to ${selector}`);
}

// ---- a run ----

// Runs test({ browser, page, url, processes, wrongs }) with a server and volunteers; 0 when it went well.
// What was there when something failed is in the picture failedName.
export async function run({ program, volunteers, pictures, failedName, test }) {
  const processes = new Processes(program);
  let browser = null;
  let page = null;
  const wrongs = [];
  try {
    // Chromium's own sandbox does not work for root. A name that is not this machine's own leads here, too.
    const args = [`--host-resolver-rules=MAP ${otherHost} 127.0.0.1`];
    if (process.getuid?.() === 0) args.push("--no-sandbox");
    browser = await chromium.launch({ executablePath: findBrowser(), args, timeout: patienceMs });
    const url = await processes.serve();
    for (const name of volunteers) processes.work(url, name);
    page = await newPage(browser);
    watch(page, url, wrongs);
    await test({ browser, page, url, processes, wrongs });
    assert.deepEqual(wrongs, []);
    passed("no error in the page or its console, no request to another host");
    return 0;
  } catch (error) {
    console.error(`FAILED: ${error.stack ?? error}`);
    for (const wrong of wrongs) console.error(`        ${wrong}`);
    for (const words of processes.lastWords()) console.error(words);
    const shot = pictures.file(failedName);
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

// In a profile of its own: nothing that another page keeps is known here.
export async function newPage(browser, more = {}) {
  const usual = { viewport: sizes.desktop, colorScheme: "light", locale: "en-GB" };
  const page = await browser.newPage({ ...usual, ...more });
  page.setDefaultTimeout(patienceMs);
  return page;
}
