// types.ts: what the server's REST interface says and takes. Times are seconds since 1970.

import type { AgentProgress } from "./agent_types";
import type { Profile, SearchProgress } from "./search_types";

export type Role = "metrics" | "viewer" | "volunteer" | "host" | "admin";
export type JobState = "waiting" | "running" | "stopped" | "finished" | "failed";
export type WorkerState = "idle" | "fetching" | "computing" | "paused";

export interface ServerInfo {
  name: string;
  version: string;
  role: Role;
  who?: string; // the name on the caller's token
  optimizers: string[]; // all that there are, as a model's text names them
  activations: string[];
  open: Role | null;
  tls: boolean;
  fingerprint: string | null;
  started: number;
  jobs: Record<JobState, number>;
  workers: number;
  idle: number; // workers in this state: without a job, or with one that has not begun
  paused: number;
  samples_per_s: number;
}

export interface Progress {
  epoch: number;
  round: number;
  step: number;
  steps: number;
  loss: number | null;
  metric: number | null;
  metric_name: string | null;
  held_out: "test" | "valid" | null;
  held_out_loss: number | null;
  held_out_metric: number | null;
  samples_per_s: number;
  eta_s: number | null;
  again: number;
}

// What a job is submitted with. What is left out comes from the model's text.
export interface JobSpec {
  name: string;
  model: string;
  data: string;
  target?: string;
  valid?: number;
  epochs?: number;
  batch?: number;
  rate?: number;
  seed?: number;
  optimizer?: string;
  schedule?: string;
  l2?: number;
  clip?: number;
  early_stop?: number;
  mode?: string;
  wire?: string;
  workers_min?: number;
  workers_max?: number;
  private?: boolean;
  guard?: boolean;
  rule?: string;
  shuffle?: string;
  augment?: string;
}

// How a job is guarded against wrong results, and what came of it.
export interface Guard {
  on: boolean;
  audited: boolean;
  units: number;
  checks: number;
  rejected: number;
}

export interface Job {
  id: number;
  kind?: "train" | "search" | "agent";
  search?: SearchProgress; // of a search
  agent?: AgentProgress; // of an agent
  name: string;
  host: string;
  state: JobState;
  reason: string;
  private: boolean;
  created: number;
  started: number | null;
  ended: number | null;
  spec: Partial<JobSpec>;
  weights: number;
  samples: number;
  rounds: number;
  workers: number;
  progress: Progress;
  guard?: Guard;
  sha256: string | null;
  files: { model: boolean; onnx: boolean; events: boolean; evaluation?: boolean };
}

// step, time, loss, metric, samples a second.
export type RoundPoint = [number, number, number | null, number | null, number | null];

export interface EpochPoint {
  epoch: number;
  step: number;
  time: number;
  loss: number | null;
  metric: number | null;
  held_out_loss: number | null;
  held_out_metric: number | null;
}

export interface History {
  rounds: RoundPoint[];
  epochs: EpochPoint[];
}

// How a classifier fares class by class. The matrix is there for few classes that exclude each other.
export interface Evaluation {
  split: "valid" | "test";
  epoch: number;
  samples: number;
  accuracy: number | null;
  macro: { precision: number; recall: number; f1: number };
  classes: ClassScores[];
  matrix?: number[][]; // rows: what it is; columns: what it is taken for
  confused?: { label: string; class: string; count: number }[];
  worst: WrongSample[];
}

export interface ClassScores {
  class: string;
  support: number;
  precision: number;
  recall: number;
  f1: number;
}

export interface WrongSample {
  sample: number;
  label: string; // what it is
  class: string; // what it is taken for
  probability: number;
  label_probability: number;
  image?: string; // an address of data
  values?: Record<string, number>;
}

export interface JobWorker {
  name: string;
  here: boolean;
  units: number;
  samples: number;
  share: number;
  seconds: number;
  samples_per_s: number;
  lag_s: number;
  units_held?: number;
  late?: boolean;
  // Of a guarded job:
  standing?: "unproven" | "proven" | "banned";
  audits_agreed?: number;
  audits_wrong?: number;
  rejected?: number;
}

export interface Unit {
  round: number;
  first: number;
  count: number;
  worker: string;
  start: number;
  end: number | null;
  again: boolean;
}

// Who has which parts of a job's data, and who got how much from whom.
export interface Swarm {
  set: string;
  chunks: number;
  bytes: number;
  sent: number; // by the server
  copies: number;
  received: number; // by all members
  members: SwarmMember[];
  flows: { from: number; to: number; bytes: number }[]; // from 0: the server
}

export interface SwarmMember {
  id: number;
  name: string;
  here: number; // chunks
  cells: string; // a digit for every part of the set: 0 none of it, 9 all
  from_server: number;
  from_peers: number;
  to_peers: number;
  blamed: number;
}

export interface LogLine {
  number: number;
  time: number;
  text: string;
}

export interface Worker {
  id: number;
  name: string;
  address: string;
  since: number;
  cores: number;
  threads: number;
  memory_bytes: number;
  kernels: string;
  speed: number;
  version: string;
  state: WorkerState;
  text: string;
  job: number | null;
  job_name: string | null;
  samples_per_s: number;
  lag_s: number;
  samples: number;
}

export interface Contribution {
  worker: string;
  units: number;
  samples: number;
  seconds: number;
}

export interface ModelInfo {
  name: string;
  owner: string | null;
  built_in: boolean;
  created: number;
  weights: number;
}

export interface Layer {
  line: number;
  text: string;
  name: string | null;
  inputs: number[];
  shape: string;
  weights: number;
}

export interface Recipe {
  optimizer?: string;
  rate?: number;
  batch?: number;
  epochs?: number;
  schedule?: string;
  seed?: number;
}

export interface TextError {
  line?: number;
  column?: number;
  text: string;
}

export type ModelCheck =
  | { ok: true; weights: number; flops_per_sample: number; layers: Layer[]; recipe: Recipe }
  | { ok: false; error: TextError };

export interface Dataset {
  name: string;
  owner: string | null;
  built_in: boolean;
  kind: string;
  bytes: number;
  created: number;
  samples: { train: number; valid: number; test: number };
  shape: string;
  classes: string[] | null;
  columns: { name: string; kind: string }[] | null;
  target?: string; // of a table: the column that it was made to predict
  vocabulary?: number; // of a text: how many different words or characters
  profile?: Profile; // of a table that is to be searched
  files: { name: string; bytes: number }[];
}

export interface TokenInfo {
  id: number;
  role: Role;
  name: string;
  job: number | null;
  created: number;
  expires: number | null;
}

export interface NewToken extends TokenInfo {
  token: string;
  link: string;
}

export interface Ban {
  id: number;
  who: string;
  reason: string;
  job: number | null;
  time: number;
}

export interface AuditEntry {
  number: number;
  time: number;
  who: string;
  what: string;
}

const ranks: Role[] = ["metrics", "viewer", "volunteer", "host", "admin"];

// A role may do what the ones before it may.
export function may(role: Role, needed: Role): boolean {
  return ranks.indexOf(role) >= ranks.indexOf(needed);
}

// A host may change own jobs, an admin all.
export function mayChange(server: ServerInfo, job: Job): boolean {
  if (may(server.role, "admin")) return true;
  return may(server.role, "host") && (server.who === undefined || server.who === job.host);
}
