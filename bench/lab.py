"""lab.py: what the measurements share, and what the experiments of docs/scaling.md are.

An experiment is a script, `bench/NAME BUILD`. It measures BUILD/shoal, keeps what it found as
BUILD/scaling/NAME.json, and has scaling_page.py write docs/scaling.md from all experiments there are.

BENCH_SECONDS is the length of a window, BENCH_WINDOWS how many of them there are."""
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = float(os.environ.get("BENCH_SECONDS", "5"))
WINDOWS = int(os.environ.get("BENCH_WINDOWS", "5"))
PROCESSORS = len(os.sched_getaffinity(0))


def words(command):
    return [str(word) for word in command]


def json_lines(command, **environment):
    """What a command prints, one object a line."""
    out = subprocess.run(words(command), cwd=ROOT, env=os.environ | environment, check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def alternate(contenders, windows=WINDOWS):
    """Windows of each contender (a name and a function) in turn, as lists by name."""
    answers = {name: [] for name in contenders}
    for _ in range(windows):
        for name, measure in contenders.items():
            answers[name].append(measure())
    return answers


def median(values):
    return statistics.median(values)


def machine():
    models = [line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return {"cpu": models[0] if models else platform.machine(), "processors": PROCESSORS,
            "memory_gb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9,
            "kernel": f"{platform.system()} {platform.release()}"}


class Experiment:
    """The command line of a script, and where its report goes."""

    def __init__(self, name, takes):
        if len(sys.argv) != 2:
            sys.exit(f"usage: bench/{name} BUILD\n{takes}")
        build = pathlib.Path(sys.argv[1]).resolve()
        self.name, self.shoal, self.folder = name, build / "shoal", build / "scaling"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.started = time.monotonic()
        self.load_before = os.getloadavg()[0]

    def say(self, text):
        print(f"{self.name}: {text}", flush=True)

    def train(self, *options, model, data):
        """The last event of `shoal train`, with the last epoch's in it."""
        out = self.folder / "model.safetensors"
        events = json_lines([self.shoal, "train", model, "--data", data, *options, "--out", out, "--json"])
        epochs = [e for e in events if e["event"] == "epoch"]
        return events[-1] | {"epochs": epochs, "seconds": sum(e["seconds"] for e in epochs)}

    def finish(self, report):
        report = {"date": datetime.date.today().isoformat(), "machine": machine(), "seconds": SECONDS,
                  "windows": WINDOWS, "load_before": self.load_before,
                  "took_s": time.monotonic() - self.started} | report
        (self.folder / f"{self.name}.json").write_text(json.dumps(report, indent=1))
        subprocess.run(words([sys.executable, ROOT / "bench/scaling_page.py", self.folder, ROOT / "docs/scaling.md"]),
                       check=True)
        self.say("wrote docs/scaling.md")
