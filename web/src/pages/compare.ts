// compare.ts: the curves of several trainings, in the same plots. Which ones stands in the address, to be
// shared.

import { get, Problem, textOf } from "../api";
import { Chart, type Curve, type XAxis } from "../chart";
import { heldOutCurve, isThere, namesOf, trainCurve, type Compared, type CompareX } from "../compared";
import { h, replace, setText } from "../dom";
import { capital, count, duration, none, rate, tidy, value } from "../format";
import { wholeJob, type JobAsSent } from "../job_shape";
import type { Frame, Page } from "../page";
import { card, stateChip } from "../parts";
import { comparedMax } from "../routes";
import { chosenColours } from "../search_layers";
import type { History } from "../types";
import { select } from "./overview_parts";

const lookEveryMs = 3000;
const jobsAtOnce = 1000;

const axes: Record<CompareX, XAxis> = {
  round: { name: "round" },
  epoch: { name: "epoch", head: (x) => `epoch ${tidy(x)}` },
  time: { name: "since it began", mark: duration, head: (x) => `after ${duration(x)}` },
};

function colourOf(i: number): string {
  return chosenColours[i % chosenColours.length] as string;
}

function heldOutName(one: Compared): string {
  return one.job.progress.held_out === "valid" ? "validation" : "test";
}

// What each has come to, beside its name.
function factsOf(one: Compared): string {
  const { progress } = one.job;
  const metric = progress.metric_name ?? "metric";
  return [
    `epoch ${count(progress.epoch)}`,
    `loss ${value(progress.loss)}`,
    progress.metric !== null && `${metric} ${value(progress.metric)}`,
    progress.held_out_metric !== null && `${heldOutName(one)} ${metric} ${value(progress.held_out_metric)}`,
    progress.samples_per_s > 0 && `${rate(progress.samples_per_s)} samples/s`,
  ]
    .filter(Boolean)
    .join(" · ");
}

export function comparePage(frame: Frame, wanted: number[]): Page {
  let ids = wanted;
  let isClosed = false;
  let charts: Chart[] = [];
  let drawnFor = "";
  const known = new Map<number, Compared & { job: ReturnType<typeof wholeJob> }>();
  const problems = new Map<number, string>();
  const list = h("ul", { class: "compared" });
  const holder = h("div", { class: "columns two" });
  const note = h("p", { class: "empty", hidden: true });
  const adding = h("select", { "aria-label": "Add a training", onchange: add });
  const byX = select(
    "What the curves are over",
    [
      ["epoch", "by epoch"],
      ["round", "by round"],
      ["time", "by time"],
    ],
    draw,
  );

  async function fetchOne(id: number): Promise<void> {
    try {
      const [sent, history] = await Promise.all([
        get<JobAsSent>(`/jobs/${id}`),
        get<History>(`/jobs/${id}/history`),
      ]);
      const job = wholeJob(sent);
      if (job.kind && job.kind !== "train") problems.set(id, "It is no training: it has no such curves");
      else known.set(id, { job, history });
    } catch (thrown) {
      if (thrown instanceof Problem && thrown.status === 0 && known.has(id)) return; // what is known stays
      problems.set(id, capital(textOf(thrown)));
    }
  }

  async function fetchThese(these: number[]): Promise<void> {
    await Promise.all(these.map(fetchOne));
    if (!isClosed) draw();
  }

  function change(next: number[]): void {
    ids = next.slice(0, comparedMax);
    history.replaceState(null, "", `/compare?jobs=${ids.join(",")}`);
    void fetchThese(ids.filter((id) => !known.has(id)));
    void fetchOthers();
    draw();
  }

  function add(): void {
    const id = Number(adding.value);
    if (id > 0) change([...ids, id]);
  }

  async function fetchOthers(): Promise<void> {
    try {
      const { jobs } = await get<{ jobs: JobAsSent[] }>(`/jobs?limit=${jobsAtOnce}`);
      const others = jobs.filter((job) => (job.kind ?? "train") === "train" && !ids.includes(job.id));
      replace(
        adding,
        h("option", { value: "" }, others.length > 0 ? "Add a training…" : "There are no more trainings"),
        ...others.map((job) => h("option", { value: job.id }, `${job.name ?? "job"} (#${job.id})`)),
      );
      adding.disabled = others.length === 0 || ids.length >= comparedMax;
    } catch {
      adding.disabled = true; // an invitation to one job may not see the others
    }
  }

  function item(id: number, at: number, name: string): HTMLElement {
    const one = known.get(id);
    const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = `var(--${colourOf(at)})`;
    const drop = h(
      "button",
      { type: "button", class: "link small", onclick: () => change(ids.filter((other) => other !== id)) },
      "Remove",
    );
    drop.setAttribute("aria-label", `Remove ${name}`);
    return h(
      "li",
      null,
      h("span", null, one && swatch, " ", h("a", { href: `/jobs/${id}` }, name)),
      one && stateChip(one.job.state),
      one
        ? h("span", { class: "muted small" }, factsOf(one))
        : h("span", { class: problems.has(id) ? "error" : "muted small" }, problems.get(id) ?? "…"),
      drop,
    );
  }

  function chartOf(
    title: string,
    all: Compared[],
    names: string[],
    curves: Curve[],
    points: boolean,
  ): Chart | null {
    const there = all.map((_, i) => i).filter((i) => isThere(curves[i] as Curve));
    if (there.length === 0) return null;
    const chart = new Chart({
      label: title,
      height: 260,
      legend: true,
      series: there.map((i) => ({
        label: names[i] as string,
        colour: colourOf(ids.indexOf((all[i] as Compared).job.id)),
        points,
      })),
    });
    chart.setX(axes[byX.value as CompareX]);
    chart.set(there.map((i) => curves[i] as Curve));
    return chart;
  }

  function draw(): void {
    const all = ids.flatMap((id) => known.get(id) ?? []);
    const names = namesOf(ids.map((id) => ({ id, name: known.get(id)?.job.name ?? `Job ${id}` })));
    replace(list, ...ids.map((id, i) => item(id, i, names[i] as string)));
    note.hidden = all.length > 0;
    setText(note, ids.length === 0 ? "Add trainings to compare their curves." : none);
    frame.title(all.length > 0 ? `Compare ${all.map((one) => one.job.name).join(", ")}` : "Compare");
    const key = JSON.stringify([
      byX.value,
      all.map(({ job, history: { rounds, epochs } }) => [job.id, job.name, rounds.length, rounds[rounds.length - 1]?.[0], epochs.length]),
    ]);
    if (key === drawnFor) return;
    drawnFor = key;
    drawCharts(
      all,
      all.map((one) => names[ids.indexOf(one.job.id)] as string),
    );
  }

  // Trainings that are measured by different metrics have plots of their own for these.
  function drawCharts(all: Compared[], names: string[]): void {
    const x = byX.value as CompareX;
    for (const chart of charts) chart.close();
    charts = [];
    const cards: HTMLElement[] = [];
    const show = (title: string, what: "loss" | "metric", those: Compared[]): void => {
      const itsNames = those.map((one) => names[all.indexOf(one)] as string);
      for (const [kind, curve] of [
        ["training", trainCurve],
        ["held out", heldOutCurve],
      ] as const) {
        const whole = `${title}, ${kind}`;
        const curves = those.map((one) => curve(one, x, what));
        const chart = chartOf(whole, those, itsNames, curves, kind === "held out");
        if (!chart) continue;
        charts.push(chart);
        cards.push(card(whole, chart.node));
      }
    };
    show("Loss", "loss", all);
    for (const metric of new Set(all.map((one) => one.job.progress.metric_name ?? "metric")))
      show(
        capital(metric),
        "metric",
        all.filter((one) => (one.job.progress.metric_name ?? "metric") === metric),
      );
    replace(holder, ...cards);
  }

  const timer = window.setInterval(() => {
    const live = ids.filter((id) => ["running", "waiting"].includes(known.get(id)?.job.state ?? ""));
    if (live.length > 0 && !document.hidden) void fetchThese(live);
  }, lookEveryMs);
  void fetchThese(ids);
  void fetchOthers();
  draw();
  return {
    title: "Compare",
    node: h(
      "div",
      { class: "page" },
      h(
        "div",
        { class: "pagehead" },
        h("h1", { tabindex: -1 }, "Compare trainings"),
        h("div", { class: "filter" }, byX, adding),
      ),
      h("section", { class: "card" }, list, note),
      holder,
    ),
    close() {
      isClosed = true;
      clearInterval(timer);
      for (const chart of charts) chart.close();
    },
  };
}
