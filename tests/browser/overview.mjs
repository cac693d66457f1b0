// overview.mjs: what one does with many jobs, with jobs that wait, and with invitations, in a real browser.
//
//   node overview.mjs SHOAL [FOLDER]
//
// Trains small networks on a table; sorts, filters, compares and deletes jobs; sees what a job waits for; makes
// invitations by the dozen and reads in the audit log that it did. All pages fit on a screen of 320 pixels.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { fitsNarrow, newPage, otherHost, passed, patienceMs, Pictures, run, tabTo, watch } from "./browser.mjs";
import { SearchStub } from "./search_stub.mjs";

const longName = "a wide network with a name that is rather long, of ninety units";

const program = process.argv[2];
if (!program) {
  console.error("usage: node overview.mjs SHOAL [FOLDER]");
  process.exit(2);
}
const pictures = new Pictures(process.argv[3] ?? path.join(path.dirname(program), "browser"), [
  "jobs",
  "compare",
  "waiting",
  "access-many",
  "overview-failed",
]);

// ---- jobs ----

async function api(url, method, where, body) {
  const answer = await fetch(`${url}/api/v1${where}`, {
    method,
    body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${where}: ${answer.status} ${text}`);
  return text === "" ? null : JSON.parse(text);
}

function table(rows) {
  const lines = ["a,b,kind"];
  for (let i = 0; i < rows; i++)
    lines.push([(i % 3) + Math.sin(i), (i % 3) * 2 + Math.cos(i * 7), "xyz"[i % 3]].join(","));
  return `${lines.join("\n")}\n`;
}

// The number of a training with so many hidden units.
async function host(url, name, units, more) {
  const model = `input 2\ndense ${units} relu\ndense 3\nloss cross-entropy\noptimizer adam rate 0.01\nbatch 16\n`;
  const spec = { name, model, data: "three", target: "kind", epochs: 4, workers_min: 1, ...more };
  return (await api(url, "POST", "/jobs", spec)).id;
}

async function reach(url, id, state) {
  let step = -1;
  let since = Date.now();
  for (;;) {
    const job = await api(url, "GET", `/jobs/${id}`);
    if (job.state === state) return job;
    assert.notEqual(job.state, "failed", job.reason);
    if (job.progress.step !== step) since = Date.now();
    step = job.progress.step;
    assert.ok(Date.now() - since < patienceMs, `job ${id} is ${job.state} and not ${state}: ${job.reason}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

async function hostAll(url) {
  await api(url, "PUT", "/datasets/three/files/three.csv", table(600));
  await api(url, "POST", "/datasets/three", { kind: "csv", target: "kind" });
  const small = await host(url, "small", 4);
  const wide = await host(url, longName, 90);
  const third = await host(url, "third", 30);
  for (const id of [small, wide, third]) await reach(url, id, "finished");
  const long = await host(url, "runs on", 30, { epochs: 100_000, guard: true });
  await reach(url, long, "running");
  const waits = await host(url, "waits", 30, { workers_min: 3 });
  return { small, wide, third, long, waits };
}

// ---- the list ----

const names = (page) => page.locator("[aria-label='Jobs'] .jobname a");

async function listed(page, wanted) {
  await page.waitForFunction((those) => {
    const links = [...document.querySelectorAll("[aria-label='Jobs'] .jobname a")];
    return JSON.stringify(links.map((one) => one.textContent)) === JSON.stringify(those);
  }, wanted);
}

async function sortAndFilter(page, url) {
  await page.goto(url);
  await listed(page, ["runs on", "waits", "third", longName, "small"]);
  passed("what runs stands first, then what waits");
  await page.selectOption("select[aria-label='Order of jobs']", "name");
  await listed(page, [longName, "runs on", "small", "third", "waits"]);
  await page.click("[aria-label='Jobs'] .sort:text-is('State')");
  await listed(page, ["runs on", "waits", longName, "small", "third"]);
  await page.selectOption("select[aria-label='Order of jobs']", "oldest");
  await listed(page, ["small", longName, "third", "runs on", "waits"]);
  await page.selectOption("select[aria-label='State of jobs']", "finished");
  await listed(page, ["small", longName, "third"]);
  await page.fill("input[aria-label='Find jobs by text']", "three wide");
  await listed(page, [longName]);
  await page.selectOption("select[aria-label='Kind of jobs']", "agent");
  await page.locator("p:visible", { hasText: "No job passes the filter." }).waitFor();
  await page.reload();
  await names(page).nth(4).waitFor();
  passed("jobs are sorted, and filtered by text, state and kind");
}

// Whatever the width, all of a name can be read.
async function readNames(page) {
  for (const width of [1280, 400, 320]) {
    await page.setViewportSize({ width, height: 800 });
    const cut = await names(page).evaluateAll((links) =>
      links
        .filter((one) => {
          const cell = one.closest("td");
          const [inner, outer] = [one.getBoundingClientRect(), cell.getBoundingClientRect()];
          return inner.right > outer.right + 1 || inner.bottom > outer.bottom + 1 || cell.clientWidth < 60;
        })
        .map((one) => one.textContent),
    );
    assert.deepEqual(cut, [], `names that are cut at ${width}`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  passed("no name is cut");
}

// What was before the page was loaded is known to the server, and shown once it has answered.
async function keepThroughput(page, url) {
  const { points } = await api(url, "GET", "/throughput");
  const oldest = new Date(points[0][0] * 1000).toTimeString().slice(0, 8);
  for (let i = 0; i < 2; i++) {
    await page.reload();
    await page.waitForFunction((time) => {
      const label = document.querySelector(".chart")?.getAttribute("aria-label") ?? "";
      return /now [1-9]/.test(label) && label.includes(`since ${time}`);
    }, oldest);
  }
  passed(`throughput is known since ${oldest}, also after a reload`);
}

async function choose(page, ...those) {
  for (const name of those) await page.check(`input[aria-label='Choose ${name}']`);
}

// ---- trainings compared ----

async function compare(page, browser, url, wrongs, ids) {
  await choose(page, "small", longName);
  await page.click("a:text-is('Compare 2 trainings')");
  await page.waitForURL(new RegExp(`/compare\\?jobs=${ids.small},${ids.wide}$`));
  const legend = (title) =>
    page.locator(".card", { has: page.locator(`h2:text-is('${title}')`) }).locator(".legend li");
  for (const title of ["Loss, training", "Loss, held out", "Accuracy, training", "Accuracy, held out"])
    assert.deepEqual(await waitTexts(legend(title), 2), ["small", longName]);
  await page.selectOption("select[aria-label='Add a training']", String(ids.third));
  assert.deepEqual(await waitTexts(legend("Loss, training"), 3), ["small", longName, "third"]);
  await page.click("button[aria-label='Remove small']");
  assert.deepEqual(await waitTexts(legend("Loss, training"), 2), [longName, "third"]);
  for (const over of ["round", "time"]) {
    await page.selectOption("select[aria-label='What the curves are over']", over);
    await legend("Loss, training").first().waitFor();
  }
  const address = page.url();
  assert.match(address, new RegExp(`/compare\\?jobs=${ids.wide},${ids.third}$`));
  const other = await newPage(browser);
  watch(other, url, wrongs);
  await other.goto(address);
  await other.locator(".legend li", { hasText: "third" }).first().waitFor();
  await other.close();
  passed("trainings are compared in one plot, and the address shows them to others");
  await page.selectOption("select[aria-label='What the curves are over']", "epoch");
  await pictures.takeAll(page, "compare");
}

async function waitTexts(locator, count) {
  await locator.nth(count - 1).waitFor();
  const texts = await locator.allTextContents();
  assert.equal(texts.length, count);
  return texts;
}

// ---- jobs that wait, words that are explained ----

async function seeWaiting(page, url, processes, ids) {
  const hour = new Date().getHours();
  const hours = `${(hour + 2) % 24}-${(hour + 3) % 24}`;
  processes.work(url, "night", ["--no-pause", "--on-battery", "--hours", hours]);
  await page.goto(`${url}/jobs/${ids.waits}`);
  await page.locator(".lead", { hasText: /^Waits for 3 workers: none has joined, 1 is paused\.$/ }).waitFor();
  await page.locator("li", { hasText: /^night is paused: outside the hours/ }).waitFor();
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  assert.ok(height <= 800, `a job that waits takes ${height} pixels`);
  assert.equal(
    await page.locator(".chart:visible, .tablebox:visible, .log:visible").count(),
    0,
    "empty frames",
  );
  passed("a job that waits says what for, without empty frames");
  await pictures.takeAll(page, "waiting");
}

async function explain(page, browser, url, wrongs, ids) {
  await page.goto(`${url}/jobs/${ids.long}`);
  await page.locator(".hint", { hasText: /^A unit of work is/ }).waitFor();
  await tabTo(page, "button[aria-label='What is “Updates rejected”?']");
  await page.keyboard.press("Enter");
  await page.locator(".helptext", { hasText: "not used" }).waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".helptext").count(), 0);
  const phone = await newPage(browser, {
    hasTouch: true,
    isMobile: true,
    viewport: { width: 320, height: 640 },
  });
  watch(phone, url, wrongs);
  await phone.goto(`${url}/jobs/${ids.long}`);
  await phone.tap("button[aria-label='What is “Units leased again”?']");
  const box = await phone.locator(".helptext").boundingBox();
  assert.ok(box.x >= 0 && box.x + box.width <= 320, `the explanation is at ${box.x}, ${box.width} wide`);
  await phone.tap("h1");
  assert.equal(await phone.locator(".helptext").count(), 0);
  await phone.close();
  passed("words are explained by keyboard and by touch");
}

// ---- several deleted ----

async function deleteSeveral(page, url, wrongs) {
  await page.goto(url);
  await choose(page, "small", "third", "runs on");
  await pictures.takeAll(page, "jobs");
  await page.click("button:text-is('Delete 3 jobs')");
  const asked = page.locator("dialog[open]");
  assert.deepEqual(await asked.locator("li").allTextContents(), ["small", "third", "runs on"]);
  await asked.locator("button:text-is('Cancel')").click();
  assert.equal(await names(page).count(), 5);
  await page.click("button:text-is('Delete 3 jobs')");
  const before = wrongs.length;
  await asked.locator("button:text-is('Delete')").click();
  await page.locator(".error li", { hasText: /^runs on: / }).waitFor();
  wrongs.push(...wrongs.splice(before).filter((wrong) => !/status of 409/.test(wrong)));
  await listed(page, ["runs on", "waits", longName]);
  await page.locator(".chosen", { hasText: "1 job is chosen." }).waitFor();
  passed("several are deleted at once, and what cannot be deleted is told with its reason");
}

// ---- invitations ----

async function invite(page, url, wrongs) {
  await page.goto(`${url}/access`);
  const log = page.locator("[aria-label='Audit log'] tbody");
  await log.locator("tr", { hasText: "deleted job 1, “small”" }).waitFor();
  await log
    .locator("tr", { hasText: "tried to delete job 4, “runs on”, in vain: its state does not allow it" })
    .waitFor();
  // Somebody else does something, and the page tells of it by itself.
  await api(url, "POST", "/tokens", { role: "volunteer", name: "lab 3" });
  await log.locator("tr", { hasText: "made an invitation for a volunteer, “lab 3”" }).waitFor();
  const row = page.locator("[aria-label='Invitations'] tr", { hasText: "lab 3" });
  assert.match(await row.textContent(), /no end date/);
  passed("the audit log tells in words what others do, as they do it");

  const before = wrongs.length;
  await page.fill("input[name=name]", "ü".repeat(40));
  await page.click("button:text-is('Make an invitation')");
  await page.locator(".field .error", { hasText: "1 to 63 bytes" }).waitFor();
  wrongs.push(...wrongs.splice(before).filter((wrong) => !/status of 422/.test(wrong)));
  passed("a name that is too long is refused with its limit, not cut");

  await page.fill("input[name=name]", "room");
  await page.fill("input[name=count]", "12");
  await page.click("button:text-is('Make 12 invitations')");
  const waiting = page.waitForEvent("download");
  await page.click("button:text-is('Download the invitations')");
  const download = await waiting;
  assert.equal(download.suggestedFilename(), "invitations-room.csv");
  const lines = fs
    .readFileSync(await download.path(), "utf8")
    .trim()
    .split("\r\n");
  assert.equal(lines.length, 13);
  assert.match(lines[12], /^room 12,volunteer,\d{4}-.*,http:\S+#t=[\w-]{22},shoal work '?http:\S+$/);
  assert.equal(new Set(lines.map((line) => line.split(",")[3])).size, 13, "two links are the same");
  await page.locator("[aria-label='Invitations'] tr", { hasText: "room 12" }).waitFor();
  await log.locator("tr", { hasText: "made 12 invitations for volunteers, “room 1” to “room 12”" }).waitFor();
  passed("a dozen invitations come as a file");
  await pictures.takeAll(page, "access-many");
  return lines[1].split(",")[3];
}

// A code that another machine would scan is of no use where the address is this machine's own.
async function seeCodes(page, browser, url, wrongs, link) {
  await page.goto(`${url}/work`);
  await page.locator(".hint", { hasText: "This address works on this machine only." }).waitFor();
  assert.equal(await page.locator(".qr").count(), 0, "a code for 127.0.0.1");
  const elsewhere = new URL(link);
  elsewhere.hostname = otherHost;
  elsewhere.pathname = "/work";
  const visitor = await newPage(browser);
  watch(visitor, elsewhere.origin, wrongs);
  await visitor.goto(elsewhere.href);
  await visitor.waitForSelector(".qr");
  await visitor.close();
  passed("there is a code for an address that others can reach, and none for 127.0.0.1");
}

// ---- narrow screens ----

async function goNarrow(page, browser, url, wrongs, ids) {
  const agent = await api(url, "POST", "/jobs", {
    kind: "agent",
    env: "CartPole-v1",
    name: "an agent that waits",
  });
  const stub = new SearchStub(url, 40);
  const search = await stub.start();
  const visitor = await newPage(browser);
  watch(visitor, search, wrongs);
  try {
    const jobs = [ids.wide, ids.long, ids.waits, agent.id].map((id) => `/jobs/${id}`);
    for (const where of [
      "/",
      "/host",
      "/search",
      "/agent",
      "/work",
      "/access",
      `/compare?jobs=${ids.wide}`,
      ...jobs,
    ]) {
      await page.goto(url + where);
      await page.waitForSelector("main .card");
      await page.locator(".lead:text-is('…')").waitFor({ state: "detached" });
      await fitsNarrow(page, where);
    }
    await page.evaluate(() => {
      document.querySelector(".connection").textContent = "Connecting";
      document.querySelector(".menu summary").textContent = "volunteer";
    });
    await fitsNarrow(page, "the longest words at the top");
    await visitor.goto(`${search}/jobs/${stub.id}`);
    await visitor.waitForSelector(".chart canvas");
    await fitsNarrow(visitor, "the page of a search");
  } finally {
    await visitor.close();
    stub.close();
  }
  wrongs.splice(0, wrongs.length, ...wrongs.filter((wrong) => !/status of 404/.test(wrong))); // the stub has no table
  passed("every page fits on a screen of 320 pixels");
}

async function testOverview({ browser, page, url, processes, wrongs }) {
  const ids = await hostAll(url);
  await sortAndFilter(page, url);
  await readNames(page);
  await keepThroughput(page, url);
  await compare(page, browser, url, wrongs, ids);
  await seeWaiting(page, url, processes, ids);
  await explain(page, browser, url, wrongs, ids);
  await deleteSeveral(page, url, wrongs);
  const link = await invite(page, url, wrongs);
  await seeCodes(page, browser, url, wrongs, link);
  await goNarrow(page, browser, url, wrongs, ids);
}

process.exit(
  await run({
    program,
    volunteers: ["desk"],
    pictures,
    failedName: "overview-failed",
    test: testOverview,
  }),
);
