"""agents_page.py: docs/benchmarks-agents.md, from what bench/agents, bench/actors and bench/envs found.

Each of them prints its own section and has the page written again; a section that was not measured is left out."""
import json
import statistics

from lab import ROOT, machine
from markup import number, table

# The goal, and the seconds that Shoal may take on two processors.
WANTED = {"CartPole-v1": (475, 5), "Acrobot-v1": (-100, 20), "MountainCar-v0": (-110, 60),
          "MountainCarContinuous-v0": (90, 60), "Pendulum-v1": (-160, 60), "LunarLander-v3": (200, 300)}


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# ---- solved within ------------------------------------------------------------------------

def of(lines, who, env):
    return sorted((line for line in lines if (line["who"], line["env"]) == (who, env)), key=lambda line: line["seed"])


def seconds_of(line, key="seconds"):
    return number(line[key]) if line["solved"] else f"not within {number(line[key])}"


def listed(lines, tell):
    return " / ".join(tell(line) for line in lines) or "-"


def times(ours, theirs):
    """How many times the peer's median of learning alone is ours; at least, where some were not solved."""
    if not ours or not theirs or not all(line["solved"] for line in ours):
        return "-"
    ratio = statistics.median(line["seconds"] for line in theirs) / statistics.median(line["seconds"] for line in ours)
    return f"{'' if all(line['solved'] for line in theirs) else 'over '}{number(ratio)}x"


def solved_rows(lines):
    for env, (goal, within) in WANTED.items():
        ours, theirs = of(lines, "shoal", env), of(lines, "sb3", env)
        if not ours and not theirs:
            continue
        peer = f"{theirs[0]['algorithm']}, {theirs[0]['threads']}" if theirs else "-"
        yield [env, goal, within, ours[0]["algorithm"] if ours else "-", listed(ours, seconds_of),
               listed(ours, lambda line: f"{line['steps']:,}"), listed(ours, lambda line: f"{line['return_mean']:.0f}"),
               peer, listed(theirs, seconds_of), listed(theirs, lambda line: number(line["seconds_all"])),
               listed(theirs, lambda line: f"{line['steps']:,}"), times(ours, theirs)]


def solved_section(lines):
    head = ["environment", "goal", "wanted: s", "Shoal", "s", "steps", "return", "peer, threads", "s, learning alone",
            "s, with scores", "steps", "faster"]
    versions = sorted({line["version"] for line in lines if line["who"] == "sb3"})
    loads = [line["load"] for line in lines if "load" in line]
    dates = sorted({line["date"] for line in lines})
    text = table(head, list(solved_rows(lines)))
    if lines:
        days = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        text += f"\n\n{days}; load before a run: {min(loads):.1f} to {max(loads):.1f}"
    if versions:
        text += f"; Stable-Baselines3 {'; '.join(versions)}"
    return text


def as_wanted(lines):
    ours = [line for line in lines if line["who"] == "shoal"]
    return all(line["solved"] and line["seconds"] <= WANTED[line["env"]][1] for line in ours)


# ---- steps of environments ----------------------------------------------------------------

ENVS_NAMES = {"shoal": "Shoal", "vector": "Gymnasium, CartPole with NumPy", "sync": "Gymnasium, SyncVectorEnv",
              "envpool": "EnvPool, one thread"}


def envs_best(report):
    """The best rate of each, whatever the number of environments."""
    best = {}
    for line in report["rates"]:
        best[line["which"]] = max(line["steps_per_s"], best.get(line["which"], 0))
    return best


def envs_section(report):
    rates = {(line["which"], line["count"]): line["steps_per_s"] for line in report["rates"]}
    counts = sorted({count for _, count in rates})
    rows = []
    for which, name in ENVS_NAMES.items():
        version = report["versions"].get(which)
        rows.append([f"{name} {version}" if version else name] +
                    [f"{rates[which, count]:,.0f}" if (which, count) in rates else "-" for count in counts])
    ratios = []
    for count in counts:
        others = [rate for (which, c), rate in rates.items() if c == count and which != "shoal"]
        ratios.append(f"{rates['shoal', count] / max(others):.1f}x" if others else "-")
    best = envs_best(report)
    others = max((rate for which, rate in best.items() if which != "shoal"), default=float("nan"))
    rows.append(["Shoal by the best other"] + ratios)
    return (table(["environments stepped together"] + [f"{count:,}" for count in counts], rows) +
            f"\n\nThe best of ours, {best['shoal']:,.0f}, is {best['shoal'] / others:.1f}x the best of the others, whatever the "
            f"number of environments. Medians of {report['rounds']} on one processor; load before: {report['load']:.1f}.")


# ---- actors -------------------------------------------------------------------------------

def actors_section(report):
    rows = [[row["env"], row["through"], row["actors"], f"{row['steps_per_s']:,.0f}", row["longest_queue"],
             f"{row['lag']:.1f}", f"{row['actors_cpu_s']:.1f}", f"{row['learner_cpu_s']:.1f}", f"{row['other_cpu_s']:.1f}",
             f"{100 * row['busy']:.0f}%"] for row in report["rows"]]
    head = ["environment", "through", "actors", "steps/s", "longest queue", "lag", "actors: s/million", "learner: s/million",
            "broker: s/million", "processors busy"]
    return (table(head, rows) + f"\n\nMedians of {report['windows']} windows of {report['seconds']:.0f} s; load before: "
            f"{report['load']:.1f}.")


# ---- the page -----------------------------------------------------------------------------

HEAD = """# Agents, measured

Written by `bench/agents`, `bench/actors` and `bench/envs`, on {processors} processors ({cpu}, {memory_gb:.0f} GB, {kernel}).
"""

SOLVED = """
## Until it is solved

Seconds and steps until 100 episodes, with the best actions and from seeds that nobody learned from, have a mean of at least the goal; a number for
each seed. Two threads each. Shoal is `shoal agent train --env NAME --seed N` with nothing else set, and its seconds are the
whole process, scores and all. Pendulum has no goal of its own: it is trained in stretches of 4,000 steps (`--resume`), each with a score, until one
reaches -160. The peer is Stable-Baselines3 with the hyper-parameters of RL Baselines3 Zoo for that environment, and the
number of PyTorch's threads with which it was faster; its seconds are learning alone, without imports, and beside that
with its scores. "Not within" is where it ended without: at the Zoo's number of steps, or at a limit of time. The last
column has the medians of Shoal's whole time and of the peer's learning alone.

"""

ENVS = """
## Steps of CartPole-v1 a second

One thread, random actions that were drawn beforehand; every step writes observations, rewards and ends of all environments, and episodes
that ended begin anew.

"""

ACTORS = """
## Actors elsewhere

Steps a second that the learner learned from (`vtrace`), with actors that are processes of one thread each, through RabbitMQ (`shoal agent act`) or
a server (`shoal work`), all on the same machine. The longest queue is the most rollouts seen waiting for the learner, lag the versions that
rollouts were behind. The processor's time is per million steps: of all actors together, of the learner (for a server
the whole of `shoal serve`), and of the broker. When the processors are busy, more actors have nothing to give.

"""


def read(path):
    return json.loads(path.read_text()) if path.exists() else None


def write(build):
    lines, envs, actors = read_lines(build / "agents.jsonl"), read(build / "envs.json"), read(build / "actors.json")
    here = read(build / "agents-machine.json") or machine()
    text = HEAD.format(**here)
    if lines:
        text += SOLVED + solved_section(lines) + "\n"
    if envs:
        text += ENVS + envs_section(envs) + "\n"
    if actors:
        text += ACTORS + actors_section(actors) + "\n"
    (ROOT / "docs/benchmarks-agents.md").write_text(text)
