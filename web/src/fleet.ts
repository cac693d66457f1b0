// fleet.ts: all jobs and workers as the server tells them, kept up to date while somebody looks.

import { get } from "./api";
import { wholeJob, type JobAsSent } from "./job_shape";
import { Live } from "./live";
import type { Frame } from "./page";
import type { Contribution, Job, ServerInfo, Worker } from "./types";

const pointsMax = 1800;
const pollMs = 3000;
const skewMax = 10; // seconds by which the server's clock may differ from ours
const listMax = 1000; // jobs and workers that are asked for at once

// Throughput: what the server has kept, then as it comes; it outlives visits to other pages.
export const throughput: { times: number[]; values: (number | null)[] } = { times: [], values: [] };

// What was while nobody looked is not known.
function noteGap(): void {
  const last = throughput.times[throughput.times.length - 1];
  if (last === undefined) return;
  throughput.times.push(last + 0.001);
  throughput.values.push(null);
}

// The server remembers the last hour, by its own clock.
async function fetchHistory(): Promise<void> {
  const { points } = await get<{ points: [time: number, value: number][] }>("/throughput");
  const behind = Date.now() / 1000 - (points[points.length - 1]?.[0] ?? 0);
  const skew = Math.abs(behind) > skewMax ? behind : 0;
  throughput.times = points.map(([time]) => time + skew);
  throughput.values = points.map(([, value]) => value);
}

function note(server: ServerInfo): void {
  const now = Date.now() / 1000;
  const { times, values } = throughput;
  if (times.length > 0 && now - (times[times.length - 1] as number) < 0.5) return;
  times.push(now);
  values.push(server.samples_per_s);
  if (times.length > pointsMax) {
    times.splice(0, times.length - pointsMax);
    values.splice(0, values.length - pointsMax);
  }
}

interface Changes<T> {
  changed: T[];
  gone: number[];
}

export class Fleet {
  readonly jobs = new Map<number, Job>();
  readonly workers = new Map<number, Worker>(); // some, when the server has more than `listMax`
  contributions: Contribution[] = [];
  next: number | null = null; // there are older jobs, before this one
  private readonly live: Live;
  private readonly timer: number;
  private polling = 0;

  constructor(
    private readonly frame: Frame,
    private readonly changed: () => void,
  ) {
    noteGap();
    this.live = new Live("/live", {
      opened: async () => {
        await Promise.all([this.fetchAll(), fetchHistory()]);
      },
      event: (name, data) => this.take(name, data),
      state: (state, retryMs, why) => {
        // An invitation to one job may not follow the server; what it may see is asked for now and then.
        if (state === "ended") this.poll();
        else frame.live(state, retryMs, why, () => this.live.now());
      },
    });
    this.timer = window.setInterval(() => {
      if (!document.hidden) void this.fetchContributions();
    }, 10_000);
  }

  // Workers that are here and not in the list.
  get untold(): number {
    return this.workers.size < listMax ? 0 : Math.max(0, this.frame.server.workers - this.workers.size);
  }

  close(): void {
    clearInterval(this.timer);
    clearInterval(this.polling);
    this.live.close();
  }

  async fetchOlder(): Promise<void> {
    if (this.next === null) return;
    const page = await get<{ jobs: JobAsSent[]; next: number | null }>(
      `/jobs?limit=${listMax}&before=${this.next}`,
    );
    for (const job of page.jobs) this.jobs.set(job.id, wholeJob(job));
    this.next = page.next;
    this.changed();
  }

  private poll(): void {
    const ask = (): void => {
      if (!document.hidden) this.fetchAll().catch(() => undefined);
    };
    ask();
    this.polling = window.setInterval(ask, pollMs);
  }

  private async fetchAll(): Promise<void> {
    const [server, jobs, workers] = await Promise.all([
      get<ServerInfo>("/server"),
      get<{ jobs: JobAsSent[]; next: number | null }>(`/jobs?limit=${listMax}`),
      get<{ workers: Worker[] }>(`/workers?limit=${listMax}`),
    ]);
    this.jobs.clear();
    for (const job of jobs.jobs) this.jobs.set(job.id, wholeJob(job));
    this.next = jobs.next;
    this.workers.clear();
    for (const worker of workers.workers) this.workers.set(worker.id, worker);
    this.takeServer(server);
    this.changed();
    void this.fetchContributions();
  }

  private async fetchContributions(): Promise<void> {
    try {
      this.contributions = (await get<{ contributions: Contribution[] }>("/contributions")).contributions;
      this.changed();
    } catch {
      // The stream says when the server is gone.
    }
  }

  private takeServer(server: ServerInfo): void {
    note(server);
    this.frame.updated(server);
  }

  private take(name: string, data: unknown): void {
    if (name === "server") this.takeServer(data as ServerInfo);
    else if (name === "jobs") merge(this.jobs, data as Changes<JobAsSent>, wholeJob);
    else if (name === "workers") merge(this.workers, data as Changes<Worker>, (worker) => worker);
    this.changed();
  }
}

function merge<S extends { id: number }, T>(
  into: Map<number, T>,
  changes: Changes<S>,
  whole: (item: S) => T,
): void {
  for (const item of changes.changed) into.set(item.id, whole(item));
  for (const id of changes.gone) into.delete(id);
}
