// search_stub.mjs: a server in front of a real one, which has a search with as many trials as a test wants,
// and passes everything else on.

import http from "node:http";

// Numbers that look like chance and are the same every time.
function chance(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const began = 1_800_000_000;

function madeUnit(unit, next) {
  const pick = (words) => words[Math.floor(next() * words.length)];
  const logBetween = (low, high) => low * (high / low) ** next();
  const layers = 1 + Math.floor(next() * 4);
  const width = Math.round(logBetween(16, 512));
  const rate = Number(logBetween(3e-4, 2e-2).toPrecision(3));
  const settings = {
    layers,
    width,
    ...(layers > 1 ? { shape: pick(["brick", "funnel", "diamond", "triangle"]) } : {}),
    residual: pick(["no", "yes"]),
    activation: pick(["relu", "silu"]),
    dropout: Number((next() * 0.5).toFixed(3)),
    normalise: pick(["none", "batch", "layer"]),
    rate,
    batch: pick([64, 128, 256]),
    decay: Number(logBetween(1e-5, 0.1).toPrecision(3)),
    numbers: pick(["standard", "quantile", "pieces"]),
    categories: pick(["one-hot", "lookup"]),
  };
  const good = 0.84 - 0.03 * Math.abs(Math.log10(rate / 2e-3)) - 0.01 * Math.abs(layers - 2) + 0.02 * next();
  const failed = next() < 0.01;
  const score = failed ? null : Number((good - 0.15 * next() ** 6).toFixed(5));
  return {
    unit,
    trial: unit + 1,
    rung: Math.floor(next() * 3),
    worker: pick(["desk", "laptop", "rack-1", "rack-2"]),
    time: began + unit * 1.7,
    settings,
    result: {
      failed,
      score,
      scores: { accuracy: score, auc: score },
      best_epoch: 8,
      epochs: 12,
      over: next() < 0.3,
      weights: 20 * width + (layers - 1) * width * width,
      seconds: Number((0.2 + (layers * width) / 900 + next()).toFixed(3)),
      sha256: "",
      error: failed ? "the loss became infinite" : "",
    },
  };
}

function makeInsight(units) {
  return {
    trials: units.length,
    importance: [
      { setting: "rate", share: 0.52 },
      { setting: "layers", share: 0.18 },
      { setting: "width", share: 0.06 },
    ],
    lessons: [
      { setting: "width", text: "wider than 256 brings nothing here: best of 412 such trials 0.861" },
    ],
    confusion: {
      classes: ["no", "yes"],
      counts: [
        [95, 15],
        [18, 51],
      ],
    },
    columns: [
      { column: "Sex", importance: 0.21 },
      { column: "Age", importance: 0.04 },
    ],
    members: [
      { trial: 1, share: 0.7 },
      { trial: 2, share: 0.3 },
    ],
    scores: { valid: { accuracy: 0.861 }, test: { accuracy: 0.849 } },
  };
}

export class SearchStub {
  id = 5000;
  #live = new Set();
  #server;

  constructor(real, count) {
    this.real = real;
    this.next = chance(7);
    this.units = Array.from({ length: count }, (_, unit) => madeUnit(unit, this.next));
  }

  async start() {
    this.#server = http.createServer((request, response) => this.#answer(request, response));
    await new Promise((done) => this.#server.listen(0, "127.0.0.1", done));
    this.url = `http://127.0.0.1:${this.#server.address().port}`;
    return this.url;
  }

  // One trial more, told to whoever watches.
  addTrial() {
    const unit = madeUnit(this.units.length, this.next);
    this.units.push(unit);
    for (const response of this.#live) response.write(`event: trial\ndata: ${JSON.stringify(unit)}\n\n`);
  }

  close() {
    for (const response of this.#live) response.end();
    this.#server?.close();
    this.#server?.closeAllConnections?.();
  }

  #job() {
    const best = this.units.reduce((a, b) => ((b.result.score ?? 0) > (a.result.score ?? 0) ? b : a));
    return {
      id: this.id,
      name: "titanic, many trials",
      host: "local",
      state: "running",
      reason: "",
      private: false,
      created: began - 5,
      started: began,
      ended: null,
      workers: 4,
      kind: "search",
      spec: {
        kind: "search",
        name: "titanic",
        data: "titanic",
        target: "Survived",
        columns: {},
        scheduler: "model",
      },
      search: {
        phase: "tries",
        share: 0.6,
        spent_s: this.units.length * 1.7,
        left_s: 900,
        trials: this.units.length,
        units: this.units.length,
        best: best.trial,
        best_score: best.result.score,
        metric: "accuracy",
        higher_is_better: true,
      },
      files: { model: true, onnx: false, events: false },
    };
  }

  #workers() {
    const units = {};
    for (const { worker } of this.units) units[worker] = (units[worker] ?? 0) + 1;
    return Object.entries(units).map(([name, count]) => ({
      name,
      here: true,
      units: count,
      samples: 0,
      share: 0,
      seconds: count * 3,
      samples_per_s: 0,
      lag_s: 0,
    }));
  }

  #own(path, query) {
    if (path === "") return this.#job();
    if (path === "/workers") return { workers: this.#workers() };
    if (path === "/log") return { lines: [] };
    if (path === "/insight") return makeInsight(this.units);
    if (path === "/trials") {
      const from = Number(query.get("from") ?? 0);
      const rows = this.units.slice(from, from + 1000);
      return { trials: rows, next: rows.length === 1000 ? from + 1000 : null };
    }
    const [, trial] = /^\/trials\/(\d+)$/.exec(path) ?? [];
    const row = this.units[Number(trial) - 1];
    if (!row) return null;
    const curve = Array.from({ length: 12 }, (_, i) => [
      i + 1,
      0.7 / (1 + i / 3),
      (row.result.score ?? 0.5) - 0.1 / (i + 1),
    ]);
    return { ...row, curve };
  }

  #answer(request, response) {
    const { pathname, searchParams } = new URL(request.url, this.real);
    const root = `/api/v1/jobs/${this.id}`;
    if (pathname !== root && !pathname.startsWith(`${root}/`)) return this.#passOn(request, response);
    if (pathname === `${root}/live`) {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write(": here\n\n");
      this.#live.add(response);
      response.on("close", () => this.#live.delete(response));
      return undefined;
    }
    const answer = this.#own(pathname.slice(root.length), searchParams);
    response.writeHead(answer === null ? 404 : 200, { "Content-Type": "application/json" });
    response.end(JSON.stringify(answer ?? { error: { text: "there is no such thing" } }));
    return undefined;
  }

  #passOn(request, response) {
    const { host: _host, ...headers } = request.headers;
    const on = http.request(`${this.real}${request.url}`, { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    on.on("error", () => response.destroy());
    response.on("close", () => on.destroy());
    request.pipe(on);
  }
}
