// agent.ts: the page that starts the training of an agent: where it acts, how it learns, how long.

import type { AgentSpec, EnvList } from "../agent_types";
import { get } from "../api";
import { h } from "../dom";
import type { Frame, Page } from "../page";
import { card } from "../parts";
import { EnvPart } from "./agent_env";
import { AgentSettings } from "./agent_settings";
import { refusal, StartForm, type StartOptions } from "./start_form";

const starting: StartOptions = {
  title: "Agent",
  heading: "Train an agent",
  doing: "training agents",
  noun: "agent",
};

export function agentPage(frame: Frame, from: number | null): Page {
  const refused = refusal(frame, starting);
  if (refused) return refused;
  const env = new EnvPart();
  const settings = new AgentSettings();
  env.changed = (chosen) => settings.setEnv(chosen);

  const form = new StartForm(frame, starting, {
    clearErrors() {
      env.setError("");
      settings.clearErrors();
    },
    spec: () => Promise.resolve({ kind: "agent", env: env.env?.name ?? "", ...settings.spec() }),
    setError({ field, message }) {
      if (field === "env") env.setError(message);
      else return settings.setError(field ?? "", message);
      return true;
    },
    async fill() {
      const [list, job] = await Promise.all([
        get<EnvList>("/envs"),
        from === null ? null : get<{ spec: Partial<AgentSpec> }>(`/jobs/${from}`),
      ]);
      settings.setAlgorithms(list.algorithms);
      if (job) settings.copy(job.spec);
      env.set(list.envs, job?.spec.env ?? null);
    },
  });
  const page = form.page(
    "page narrow",
    h(
      "p",
      { class: "lead" },
      "Choose an environment: machines that lend a hand play it, and the agent learns from all of them.",
    ),
    card("1. Environment", env.node),
    card("2. How it learns", settings.node),
    form.row,
  );
  return {
    ...page,
    close() {
      env.close();
      page.close();
    },
  };
}
