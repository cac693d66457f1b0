import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  agentAbout,
  agentCommand,
  agentResult,
  agentShare,
  agentSummary,
  commandTitle,
  envFacts,
  lagText,
  minutesText,
  noProgress,
  readSettings,
  settings,
  settingsFor,
  usualAgentMore,
} from "../src/agent_spec";
import type { AgentProgress, AgentSpec } from "../src/agent_types";
import { wholeJob } from "../src/job_shape";
import { routeOf } from "../src/routes";
import type { Job } from "../src/types";

function job(more: Partial<Job>, agent: Partial<AgentProgress> = {}, spec: Partial<AgentSpec> = {}): Job {
  const whole = wholeJob({ id: 1, kind: "agent", agent: { ...noProgress, ...agent }, ...more });
  return { ...whole, spec: { env: "CartPole-v1", ...spec } as Job["spec"] };
}

test("the Agent page is found, and the job to begin from", () => {
  assert.deepEqual(routeOf("/agent"), { page: "agent", from: null });
  assert.deepEqual(routeOf("/agent", "?from=7"), { page: "agent", from: 7 });
  assert.deepEqual(routeOf("/agent/7"), { page: "missing" });
});

test("the form offers what the program knows, and nothing else", () => {
  const source = readFileSync("../src/agent/settings.c", "utf8");
  const known = [...source.matchAll(/^ +SETTING\((\w+), .*, ([A-Z |]+)\),$/gm)];
  const groups: Record<string, string[]> = { ALL: [], CRITICS: ["ppo", "vtrace"], MEMORIES: ["dqn", "sac"] };
  const algorithms = (words: string): string[] =>
    words.split(" | ").flatMap((word) => groups[word] ?? [word.toLowerCase()]);
  assert.deepEqual(
    settings.map((one) => [one.name, one.algorithms]),
    known.map((found) => [found[1], algorithms(found[2] ?? "")]),
  );
});

test("each algorithm has its own settings", () => {
  const names = (algorithm: string): string[] => settingsFor(algorithm).map((one) => one.name);
  assert.ok(names("ppo").includes("ratio_clip") && names("ppo").includes("rate"));
  assert.ok(!names("dqn").includes("ratio_clip") && names("dqn").includes("epsilon_to"));
});

test("how much is done goes by time or steps, whichever ends it", () => {
  assert.equal(agentShare(job({ state: "finished" })), 1);
  assert.equal(agentShare(job({ state: "running" }, { seconds: 30, steps: 10 }, { seconds: 60 })), 0.5);
  const both = { seconds: 30, steps: 80, steps_all: 100 };
  assert.equal(agentShare(job({ state: "running" }, both, { seconds: 60 })), 0.8);
  assert.equal(agentShare(job({ state: "running" }, { steps: 80, steps_all: 160 })), 0.5);
  assert.equal(agentShare(job({ state: "running" }, { steps: 80 })), 0);
});

test("the sentence tells how it goes", () => {
  const solved = { steps: 14_336, seconds: 3, score: 496.2, solved: true, goal: 475 };
  assert.equal(
    agentSummary(job({ state: "finished", ended: 100 }, solved), 160),
    "Solved 1 min ago: a return of 496 over 100 episodes, after 14,336 steps in 3.0 s.",
  );
  assert.match(
    agentSummary(job({ state: "finished", ended: 100 }, { ...solved, solved: false, score: 20 }), 101),
    /^Finished just now after 14,336 steps in 3\.0 s, a return of 20 over 100 episodes; not solved\.$/,
  );
  assert.match(
    agentSummary(job({ state: "finished" }, { ...solved, solved: false, score: 20, score_episodes: 20 }), 1),
    /, a return of 20 over 20 episodes; not solved\.$/,
  );
  assert.equal(
    agentSummary(
      job({ state: "running", workers: 1 }, { steps: 2048, seconds: 1, return_mean: 18, goal: 475 }),
      0,
    ),
    "Plays and learns: 2,048 steps in 1.0 s; its return is 18, the goal 475.",
  );
  assert.equal(agentSummary(job({ state: "running", workers: 1 }), 0), "Begins to play CartPole-v1.");
  assert.equal(agentSummary(job({ state: "running" }), 0), "Waits for machines that play.");
  assert.equal(agentSummary(job({ state: "waiting", reason: "waits for workers" }), 0), "Waits for workers.");
  assert.match(agentSummary(job({ state: "stopped" }, { steps: 1, seconds: 1 }), 0), /^Stopped \(1 step in/);
});

test("lists say what it has come to", () => {
  assert.equal(agentResult({ ...noProgress, score: 500, solved: true }), "500, solved");
  assert.equal(agentResult({ ...noProgress, score: 12.5 }), "12.5 score");
  assert.equal(agentResult({ ...noProgress, return_mean: -140.2 }), "-140 return");
  assert.equal(agentResult(noProgress), "");
  assert.equal(agentAbout({ env: "Snake-v0", algorithm: "dqn" }), "Snake-v0 · dqn");
  assert.deepEqual([0, 0.75, 1.333, null].map(lagText), ["0", "0.75", "1.33", "–"]);
});

test("the same training can be had from a terminal", () => {
  assert.equal(
    agentCommand({ env: "CartPole-v1", algorithm: "ppo", seed: 3, seconds: 600, steps: 0 }),
    "shoal agent train --env CartPole-v1 --algorithm ppo --seed 3 --seconds 600",
  );
  assert.equal(
    agentCommand({ env: "Maze-v0", settings: { rate: "0.01", anneal: false }, until_solved: false }),
    "shoal agent train --env Maze-v0 --set rate=0.01,anneal=no --full",
  );
  assert.equal(
    agentCommand({ env: "Maze-v0", seconds: 2.8950516750046518 }),
    "shoal agent train --env Maze-v0 --seconds 2.9",
  );
  assert.match(commandTitle({ exact: true }), /^The same training/);
  assert.match(commandTitle({ exact: false }), /^A training like it/);
});

test("minutes are such as a form takes", () => {
  assert.deepEqual([undefined, 0, 2.8950516, 90, 300, 6030].map(minutesText), [
    "",
    "",
    "0.1",
    "1.5",
    "5",
    "100.5",
  ]);
});

test("settings are read by name; what is wrong has its row", () => {
  const rows = [
    { name: "rate", value: " 0.01 " },
    { name: "", value: "" },
    { name: "envs", value: "4" },
  ];
  assert.deepEqual(readSettings(rows), { settings: { rate: "0.01", envs: "4" }, wrong: null });
  assert.equal(readSettings([{ name: "", value: "4" }]).wrong?.index, 0);
  assert.match(readSettings([{ name: "rate", value: " " }]).wrong?.text ?? "", /say what/);
  const twice = [rows[0], rows[0]] as { name: string; value: string }[];
  assert.deepEqual(readSettings(twice).wrong, { index: 1, text: "rate is set twice" });
});

test("one that ended goes on for as long again, or twice as far", () => {
  assert.deepEqual(usualAgentMore({ seconds: 60 }, noProgress), { seconds: 60 });
  assert.deepEqual(usualAgentMore({ steps: 100 }, noProgress), { steps: 150 });
  assert.deepEqual(usualAgentMore({}, { ...noProgress, steps: 40 }), { steps: 80 });
  assert.deepEqual(usualAgentMore({}, noProgress), {});
});

test("an environment says its goal, its end and what one may do", () => {
  assert.equal(
    envFacts({ goal: 475, limit: 500, actions: 2 }),
    "solved at 475 · at most 500 steps · 2 choices",
  );
  assert.equal(envFacts({ goal: null, limit: 0, actions: null }), "no stated goal · acts by real numbers");
});
