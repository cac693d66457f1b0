// job_shape.ts: a job as pages want it. One that has never run comes without progress, weights and files. Pure.

import type { Job, Progress } from "./types";

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

export type JobAsSent = Partial<Omit<Job, "id" | "progress">> & { id: number; progress?: Partial<Progress> };

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
    spec: sent.spec ?? {},
    progress: { ...noProgress, ...sent.progress },
    files: { model: false, onnx: false, events: false, ...sent.files },
  };
}
