// agent_types.ts: what the server says and takes about agents. Times are seconds since 1970.

// A picture of an environment, as it draws itself. x goes to the right, y up.
export type Ink = "line" | "body" | "accent" | "goal" | "faint";

export interface Shape {
  form: "line" | "area" | "disc";
  ink: Ink;
  width?: number; // line: of the pen; disc: its radius
  points: number[]; // x, y, x, y, ...
}

export interface Picture {
  view: [left: number, right: number, bottom: number, top: number];
  shapes: Shape[];
}

export interface EnvInfo {
  name: string;
  says: string;
  goal: number | null;
  limit: number;
  observation: number; // numbers that an agent sees
  actions: number | null; // null: real numbers
  algorithms: string[];
  usual: string;
  picture?: Picture; // how an episode may begin
}

export interface AlgorithmInfo {
  name: string;
  says: string;
}

export interface EnvList {
  envs: EnvInfo[];
  algorithms: AlgorithmInfo[];
}

export type SettingValue = string | number | boolean;

export interface AgentSpec {
  kind: "agent";
  name?: string;
  env: string;
  algorithm?: string;
  seed?: number;
  seconds?: number;
  steps?: number;
  until_solved?: boolean;
  exact?: boolean;
  settings?: Record<string, SettingValue>;
  body?: string;
  private?: boolean;
  workers_min?: number;
  workers_max?: number;
}

// How far an agent is, in a job of that kind.
export interface AgentProgress {
  steps: number;
  steps_all: number; // that are planned
  seconds: number;
  episodes: number;
  return_mean: number | null;
  return_deviation: number | null;
  steps_per_second: number;
  lag: number; // versions that rollouts are behind, on average
  refused: number;
  version: number;
  score: number | null;
  score_deviation: number | null;
  score_episodes: number; // 100; fewer where it began badly
  solved: boolean;
  goal: number | null;
  actors: number;
  waiting: number; // rollouts that wait for the learner
  lost: number; // that came too late
  given_again: number; // units whose actor was gone or silent
  checked?: number; // rollouts that the server played again
  lies?: number; // of those, that were something else
  bytes_in: number;
  bytes_out: number;
  checkpoints: number;
}

export interface AgentPoint {
  steps: number;
  seconds: number;
  return_mean: number | null;
  return_deviation: number | null;
  steps_per_second: number | null;
  lag: number | null;
  score?: number | null;
  score_deviation?: number | null;
  solved?: boolean;
}

export interface Checkpoint {
  steps: number;
  bytes: number;
  time: number;
}

// A reward for every step; a picture of before each, and one of how it ended.
export interface Episode {
  env: string;
  steps: number; // of its checkpoint
  pace: number; // pictures a second
  return: number;
  end: "terminated" | "truncated" | "goes on";
  rewards: number[];
  pictures: Picture[];
}
