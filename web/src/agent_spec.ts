// agent_spec.ts: what an agent is trained with, in words, as a command, and how far it is. Pure.

import { ago, capital, count, counted, duration, shellWord } from "./format";
import { returnText, spreadText } from "./agent_picture";
import type { AgentProgress, AgentSpec, SettingValue } from "./agent_types";
import type { Job } from "./types";

// What may be set by name. An empty list: whatever the algorithm is.
export interface Setting {
  name: string;
  says: string;
  algorithms: string[];
}

const critics = ["ppo", "vtrace"];
const memories = ["dqn", "sac"];

export const settings: Setting[] = [
  { name: "streams", says: "streams of a round, one actor each", algorithms: [] },
  { name: "envs", says: "environments in a stream", algorithms: [] },
  { name: "steps", says: "steps of each environment in a round", algorithms: [] },
  { name: "lag", says: "versions that a round is behind", algorithms: [] },
  { name: "lag_max", says: "versions behind that are still learned from", algorithms: [] },
  { name: "budget", says: "steps of a whole training", algorithms: [] },
  { name: "discount", says: "what a reward counts one step later", algorithms: [...critics, ...memories] },
  { name: "rate", says: "how fast it learns", algorithms: [] },
  { name: "clip", says: "the longest gradient; 0: any", algorithms: [] },
  { name: "anneal", says: "yes: the rate falls to zero towards the end", algorithms: [] },
  { name: "scale_observations", says: "by their means and deviations: yes or no", algorithms: [] },
  { name: "scale_rewards", says: "by their deviation: yes or no", algorithms: [...critics, ...memories] },
  { name: "lambda", says: "how far advantages look ahead", algorithms: critics },
  { name: "entropy", says: "what being undecided is worth", algorithms: [...critics, "sac"] },
  { name: "value_weight", says: "weight of the values' loss", algorithms: critics },
  { name: "ratio_clip", says: "how far a round may move the policy", algorithms: critics },
  { name: "epochs", says: "how often a round is gone over", algorithms: [...critics, "clone"] },
  { name: "minibatch", says: "rows of one step of learning", algorithms: [...critics, "clone"] },
  { name: "memory", says: "steps that are remembered", algorithms: memories },
  { name: "batch", says: "rows of an update", algorithms: memories },
  { name: "warmup", says: "steps before the first update", algorithms: memories },
  { name: "n_step", says: "rewards before the value is asked", algorithms: memories },
  { name: "updates", says: "for each step of an environment", algorithms: memories },
  { name: "follow", says: "share by which the slow network follows", algorithms: memories },
  { name: "epsilon_from", says: "share of random choices at first", algorithms: ["dqn"] },
  { name: "epsilon_to", says: "share of random choices at last", algorithms: ["dqn"] },
  { name: "epsilon_steps", says: "steps until then", algorithms: ["dqn"] },
  { name: "hold", says: "steps that a random choice is kept", algorithms: memories },
  { name: "duelling", says: "advantages and a value apart: yes or no", algorithms: ["dqn"] },
  { name: "keep_share", says: "share of the goal that an episode must reach", algorithms: ["clone"] },
  { name: "keep_steps", says: "steps that are kept", algorithms: ["clone"] },
];

export function settingsFor(algorithm: string): Setting[] {
  return settings.filter((one) => one.algorithms.length === 0 || one.algorithms.includes(algorithm));
}

export const noProgress: AgentProgress = {
  steps: 0,
  steps_all: 0,
  seconds: 0,
  episodes: 0,
  return_mean: null,
  return_deviation: null,
  steps_per_second: 0,
  lag: 0,
  refused: 0,
  version: 0,
  score: null,
  score_deviation: null,
  score_episodes: 100,
  solved: false,
  goal: null,
  actors: 0,
  waiting: 0,
  lost: 0,
  given_again: 0,
  bytes_in: 0,
  bytes_out: 0,
  checkpoints: 0,
};

export function agentOf(job: Pick<Job, "agent"> | null): AgentProgress {
  return { ...noProgress, ...job?.agent };
}

export function agentSpecOf(job: Pick<Job, "spec"> | null): Partial<AgentSpec> {
  return (job?.spec ?? {}) as Partial<AgentSpec>;
}

// How much of it is done, from 0 to 1: of its time or its steps, whichever ends it sooner.
export function agentShare(job: Pick<Job, "state" | "agent" | "spec">): number {
  if (job.state === "finished") return 1;
  const agent = agentOf(job);
  const spec = agentSpecOf(job);
  const parts = [
    spec.seconds ? agent.seconds / spec.seconds : 0,
    agent.steps_all > 0 ? agent.steps / agent.steps_all : 0,
  ];
  return Math.min(Math.max(...parts, 0), 1);
}

// What it has come to, for a list of jobs.
export function agentResult(agent: AgentProgress): string {
  if (agent.solved) return `${returnText(agent.score ?? agent.return_mean)}, solved`;
  if (agent.score !== null) return `${returnText(agent.score)} score`;
  return agent.return_mean === null ? "" : `${returnText(agent.return_mean)} return`;
}

// In a list of jobs, below the name: what is learned, and how.
export function agentAbout(spec: Partial<AgentSpec>): string {
  return [spec.env, spec.algorithm].filter(Boolean).join(" · ");
}

function played(agent: AgentProgress): string {
  return `${counted(agent.steps, "step")} in ${duration(agent.seconds)}`;
}

// The sentence under the name.
export function agentSummary(job: Job, now: number): string {
  const agent = agentOf(job);
  const { env } = agentSpecOf(job);
  if (job.state === "finished") {
    const when = job.ended ? ` ${ago(job.ended, now)}` : "";
    const episodes = counted(agent.score_episodes, "episode");
    if (agent.solved)
      return `Solved${when}: a return of ${returnText(agent.score)} over ${episodes}, after ${played(agent)}.`;
    const score = agent.score === null ? "" : `, a return of ${returnText(agent.score)} over ${episodes}`;
    const goal = agent.goal === null ? "" : "; not solved";
    return `Finished${when} after ${played(agent)}${score}${goal}.`;
  }
  if (job.state === "stopped" || job.state === "failed")
    return `${capital(job.reason || job.state)} (${played(agent)}).`;
  if (job.state === "waiting" || (job.workers === 0 && agent.actors === 0))
    return job.reason ? `${capital(job.reason)}.` : "Waits for machines that play.";
  if (agent.steps === 0) return `Begins to play ${env ?? ""}`.trimEnd() + ".";
  const goal =
    agent.return_mean !== null && agent.goal !== null
      ? `; its return is ${returnText(agent.return_mean)}, the goal ${returnText(agent.goal)}`
      : "";
  return `Plays and learns: ${played(agent)}${goal}.`;
}

export function scoreText(agent: AgentProgress): string {
  return spreadText(agent.score, agent.score_deviation);
}

// Without zeros that say nothing: 0, 1, 1.4
export function lagText(lag: number | null): string {
  return lag === null ? "–" : String(Number(lag.toFixed(2)));
}

function settingWords(given: Record<string, SettingValue> | undefined): string {
  const text = (value: SettingValue): string =>
    typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
  return Object.entries(given ?? {})
    .map(([name, value]) => `${name}=${text(value)}`)
    .join(",");
}

// A time as one would type it: not 2.8950516750046518.
function typedSeconds(seconds: number | undefined): number | undefined {
  return seconds ? Math.max(Math.round(seconds * 10) / 10, 0.1) : undefined;
}

// What the command below comes to: the bits depend on who played when, unless rounds are exact.
export function commandTitle(spec: Partial<AgentSpec>): string {
  return spec.exact ? "The same training on one machine:" : "A training like it on one machine:";
}

// Such a training on one machine.
export function agentCommand(spec: Partial<AgentSpec>): string {
  const set = settingWords(spec.settings);
  const options: [string, string | number | undefined][] = [
    ["--env", spec.env ?? "ENV"],
    ["--algorithm", spec.algorithm],
    ["--seed", spec.seed],
    ["--seconds", typedSeconds(spec.seconds)],
    ["--steps", spec.steps || undefined],
    ["--set", set || undefined],
    ["--model", spec.body ? "body.net" : undefined],
  ];
  const words = options
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => `${name} ${shellWord(String(value))}`);
  if (spec.until_solved === false) words.push("--full");
  return ["shoal agent train", ...words].join(" ");
}

// What a form has of settings: names and what was typed. Throws nothing: what is wrong comes back by name.
export function readSettings(rows: { name: string; value: string }[]): {
  settings: Record<string, string>;
  wrong: { index: number; text: string } | null;
} {
  const read: Record<string, string> = {};
  for (const [index, { name, value }] of rows.entries()) {
    const text = value.trim();
    if (name === "" && text === "") continue;
    if (name === "") return { settings: read, wrong: { index, text: "choose what to set" } };
    if (text === "") return { settings: read, wrong: { index, text: "say what to set it to" } };
    if (name in read) return { settings: read, wrong: { index, text: `${name} is set twice` } };
    read[name] = text;
  }
  return { settings: read, wrong: null };
}

const leastMinutes = 0.1;

// What a form takes: minutes as one would type them, as many as it takes at least.
export function minutesText(seconds: number | undefined): string {
  return seconds ? String(Math.max(Math.round((seconds / 60) * 100) / 100, leastMinutes)) : "";
}

// What to go on with, where it ended because it was at its end.
export function usualAgentMore(
  spec: Partial<AgentSpec>,
  agent: AgentProgress,
): { seconds?: number; steps?: number } {
  if (spec.seconds) return { seconds: spec.seconds };
  if (spec.steps) return { steps: spec.steps + Math.max(Math.round(spec.steps / 2), 1) };
  return agent.steps > 0 ? { steps: agent.steps * 2 } : {};
}

// In a line: what is to be reached, and for how long.
export function envFacts(env: { goal: number | null; limit: number; actions: number | null }): string {
  const parts = [
    env.goal === null ? "no stated goal" : `solved at ${returnText(env.goal)}`,
    env.limit > 0 ? `at most ${count(env.limit)} steps` : null,
    env.actions === null ? "acts by real numbers" : `${count(env.actions)} choices`,
  ];
  return parts.filter(Boolean).join(" · ");
}
