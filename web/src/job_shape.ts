// job_shape.ts: a job as pages want it. One that has never run comes without progress, weights and files.
// Pure.

import type { Job, JobSpec, Progress, Recipe } from "./types";

const noProgress: Progress = {
  epoch: 0,
  round: 0,
  step: 0,
  steps: 0,
  loss: null,
  metric: null,
  metric_name: null,
  held_out: null,
  held_out_loss: null,
  held_out_metric: null,
  samples_per_s: 0,
  eta_s: null,
  again: 0,
};

export type JobAsSent = Partial<Omit<Job, "id" | "progress">> & {
  id: number;
  progress?: Partial<Progress>;
  recipe?: Recipe & { early_stop?: number }; // what was not in the spec and came from the model's text
};

function wholeSpec(sent: JobAsSent): Partial<JobSpec> {
  const spec: Partial<JobSpec> = { ...sent.spec };
  const { rate, seed, optimizer } = sent.recipe ?? {};
  if (rate !== undefined) spec.rate ??= rate;
  if (seed !== undefined) spec.seed ??= seed;
  if (optimizer !== undefined) spec.optimizer ??= optimizer;
  return spec;
}

// Where the server does not say which files there are: there is a model after the first epoch.
function wholeFiles(sent: JobAsSent): Job["files"] {
  const any = (sent.progress?.epoch ?? 0) > 0 || sent.state === "finished";
  return sent.files ?? { model: any, onnx: any, events: any };
}

export function wholeJob(sent: JobAsSent): Job {
  return {
    name: `job ${sent.id}`,
    host: "",
    state: "waiting",
    reason: "",
    private: false,
    created: 0,
    started: null,
    ended: null,
    weights: 0,
    samples: 0,
    rounds: 0,
    workers: 0,
    sha256: null,
    ...sent,
    spec: wholeSpec(sent),
    progress: { ...noProgress, ...sent.progress },
    files: wholeFiles(sent),
  };
}

// A job that is being prepared to go on does not say yet how far it was: what is known stays.
export function furtherProgress(known: Progress | null, told: Progress): Progress {
  if (!known || told.step > 0) return told;
  return { ...known, steps: told.steps || known.steps, samples_per_s: 0, eta_s: null };
}

// How much of a search is done, from 0 to 1.
export function shareDone(job: Pick<Job, "state" | "search">): number {
  if (job.state === "finished") return 1;
  return Math.min(Math.max(job.search?.share ?? 0, 0), 1);
}
