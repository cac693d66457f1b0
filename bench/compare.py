"""compare.py: measures Shoal beside its peers and writes what it found as JSON, for page.py.

    compare.py SHOAL PYTHON OUT.json     (PYTHON: the one that has the peers' packages)

For each case every mode and number of threads of every peer is tried once, from our weights and on our
batch: a mode whose losses in the first ten steps are not ours does other work. It is left out, and the
exit status is 1. Then the best of each peer and ours take turns, some windows each, so that whatever
else the machine does meets all of them; medians count. Only one process computes at any time: the peers
(peers/peer.py) stay loaded and wait for their turn, and how much processor time they use while waiting
is measured too.

BENCH_SECONDS is the length of a window, BENCH_WINDOWS how many of them there are.
"""
import collections
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from lab import PROCESSORS as THREADS
from lab import ROOT, WINDOWS, alternate, json_lines, machine

HERE = ROOT / "bench"
SECONDS = float(os.environ.get("BENCH_SECONDS", "1.5"))
GEMM_SECONDS = 0.3  # a shape; there are dozens

# `net` is what `shoal bench train --net` takes, `network` what the peers call it.
Case = collections.namedtuple("Case", "title network net batch")
CASES = [
    Case("LeNet-5", "lenet5", "lenet5", 512),
    Case("LeNet-5", "lenet5", "lenet5", 256),
    Case("LeNet-5", "lenet5", "lenet5", 128),
    Case("LSTM 2x200, 30 steps, 10,000 words", "lstm-ptb", "lstm-ptb", 20),
    Case("LSTM 2x200, 30 steps, 10,000 words", "lstm-ptb", "lstm-ptb", 5),
    Case("MLP 784-100-10", "mlp", "mlp", 100),
    Case("residual net of 14 layers, 3x32x32", "resnet", "bench/resnet.net", 128),
    Case("dense 100-512-512-512-2", "dense", "bench/dense.net", 256),
]
LOSS_TOLERANCE = 0.005  # of what ten steps change the loss by
START = "start.safetensors"  # what each case begins with
PEERS = {"PyTorch": "torch_peer.py", "TensorFlow": "tensorflow_peer.py", "JAX": "jax_peer.py"}


def summary(answers):
    rates = [a["batches_per_s"] for a in answers]
    return {"batches_per_s": statistics.median(rates), "min": min(rates), "max": max(rates)}


# ---- ours ------------------------------------------------------------------------------


class Shoal:
    """Our program; remembers the highest peak that any window saw, and what that window says against it."""

    def __init__(self, path, folder):
        self.path, self.folder = path, folder
        self.peak_gflops, self.warning = 0, None

    def bench(self, net, batch, threads=THREADS, **environment):
        command = [self.path, "bench", "train", "--net", net, "--batch", batch, "--threads", threads,
                   "--seconds", SECONDS, "--json"]
        answer = json_lines(command, **environment)[0]
        if threads == THREADS and not environment and answer["peak_gflops"] > self.peak_gflops:
            self.peak_gflops, self.warning = answer["peak_gflops"], answer["warning"]
        return answer

    def losses(self, case, start):
        """Of the first ten steps; the file `start` gets what they begin with."""
        command = [self.path, "bench", "train", "--net", case.net, "--batch", case.batch, "--losses", start, "--json"]
        return json_lines(command)[0]["losses"]

    def train(self, batch, out):
        """Samples a second of a real training of LeNet-5, in its second epoch."""
        command = [self.path, "train", "examples/lenet5.net", "--data", "fashion-mnist", "--batch", batch,
                   "--epochs", 2, "--threads", THREADS, "--out", out, "--json"]
        return [e for e in json_lines(command) if e["event"] == "epoch"][-1]["samples_per_s"]


# ---- the peers -------------------------------------------------------------------------


class Peer:
    """The process of one peer with one number of threads, started when first needed."""

    def __init__(self, python, script, threads, folder):
        self.command = [python, HERE / "peers" / script, "--threads", str(threads)]
        self.threads, self.folder = threads, folder
        self.process, self.version, self.modes = None, None, {}

    def start(self):
        """Does nothing when it runs already."""
        if self.alive():
            return
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(self.folder / "peers-cache"),
                                    "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
        with open(self.folder / "peers.log", "a") as log:
            self.process = subprocess.Popen(self.command, env=environment, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        hello = json.loads(self.process.stdout.readline() or "{}")
        self.version, self.modes = hello.get("version"), hello.get("modes", {})

    def measure(self, case, mode, seconds):
        """What peer.py answers; {"failed": why} also when the process is gone."""
        try:
            print(case.network, case.batch, mode, seconds, self.folder / START, file=self.process.stdin, flush=True)
            return json.loads(self.process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            return {"failed": "the process ended"}

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def close(self):
        if self.alive():
            self.process.stdin.close()
            self.process.wait()


def difference(ours, theirs):
    """The largest in ten steps, as a share of what they change our loss by."""
    return max(abs(a - b) for a, b in zip(ours, theirs)) / (max(ours) - min(ours))


def compare_losses(case, ours, tried):
    """Marks the rows that do other work as failed, and prints the losses side by side."""
    columns = {"Shoal": ours}
    for row in (row for row in tried if "losses" in row):
        row["difference"] = difference(ours, row["losses"])
        if not row["difference"] <= LOSS_TOLERANCE:
            row["failed"] = f"other work: a loss is off by {100 * row['difference']:.2g}% of what ten steps change it by"
            del row["batches_per_s"]
        if row["threads"] == THREADS:
            columns[f"{row['peer']} {row['mode']}"] = row["losses"]
    print(f"{case.title}, batch {case.batch}: losses of ten steps")
    print("  step  " + "  ".join(f"{name:>12}" for name in columns))
    for step, row in enumerate(zip(*columns.values()), 1):
        print(f"  {step:4}  " + "  ".join(f"{loss:{max(12, len(name))}.6f}" for name, loss in zip(columns, row)))


def search(case, peers):
    """Every mode and number of threads of every peer, for a short window each."""
    tried = []
    for name, processes in peers.items():
        for peer in processes:
            peer.start()
            for mode in peer.modes.get(case.network, []):
                start = time.monotonic()
                answer = peer.measure(case, mode, SECONDS / 2)
                tried.append({"peer": name, "mode": mode, "threads": peer.threads,
                              "took_s": time.monotonic() - start} | answer)
    return tried


def best_of(tried, name):
    rows = [row for row in tried if row["peer"] == name and "batches_per_s" in row]
    return max(rows, key=lambda row: row["batches_per_s"], default=None)


def watched(measure, peers, wall_and_idle):
    """`measure`, which also adds up its time and the processor time of the peers meanwhile."""
    def run():
        waiting = [p for processes in peers.values() for p in processes if p.alive()]
        before, start = sum(p.cpu_seconds() for p in waiting), time.monotonic()
        answer = measure()
        wall_and_idle[0] += time.monotonic() - start
        wall_and_idle[1] += sum(p.cpu_seconds() for p in waiting) - before
        return answer
    return run


def measure_case(case, shoal, peers):
    ours = shoal.losses(case, shoal.folder / START)
    tried = search(case, peers)
    compare_losses(case, ours, tried)
    wall_and_idle = [0, 0]
    contenders = {"Shoal": watched(lambda: shoal.bench(case.net, case.batch), peers, wall_and_idle)}
    chosen = {}
    for name, processes in peers.items():
        best = best_of(tried, name)
        if best is None:
            continue
        peer = next(p for p in processes if p.threads == best["threads"])
        chosen[name] = {"mode": best["mode"], "threads": best["threads"]}
        contenders[name] = lambda peer=peer, mode=best["mode"]: peer.measure(case, mode, SECONDS)
    answers = alternate(contenders)
    for name in [name for name, windows in answers.items() if any("failed" in w for w in windows)]:
        print(f"bench: {name} failed at {case.title}, batch {case.batch}: {answers[name][-1]}", file=sys.stderr)
        del chosen[name]
    first = answers["Shoal"][0]
    row = {"title": case.title, "network": case.network, "batch": case.batch,
           "gflop_a_batch": first["gflops"] / first["batches_per_s"],
           "shoal": summary(answers["Shoal"]) | {"threads": THREADS},
           "peers": {name: how | summary(answers[name]) for name, how in chosen.items()},
           "losses": ours, "waiting_cpu_share": wall_and_idle[1] / wall_and_idle[0],
           "tried": tried}
    rates = {"Shoal": row["shoal"]["batches_per_s"]} | {n: how["batches_per_s"] for n, how in row["peers"].items()}
    print(f"{case.title}, batch {case.batch}:", ", ".join(f"{n} {rate:.4g}" for n, rate in rates.items()), flush=True)
    return row


# ---- beside the table ------------------------------------------------------------------


def threads_against_one(shoal):
    answers = alternate({str(n): lambda n=n: shoal.bench("lenet5", 512, n) for n in sorted({1, THREADS})})
    return {name: summary(a) for name, a in answers.items()}


def kernels_compared(shoal):
    """AVX2 beside what the processor has, where that is more."""
    best = shoal.bench("lenet5", 512)["kernels"]
    names = [best] + (["avx2"] if best == "avx512" else [])
    rows = {}
    for net, batch in (("lenet5", 512), ("lstm-ptb", 20)):
        answers = alternate({k: lambda k=k: shoal.bench(net, batch, SHOAL_KERNELS=k) for k in names})
        rows[f"{net}, batch {batch}"] = {name: summary(a) for name, a in answers.items()}
    return rows


def training_against_bench(shoal, folder):
    rows = []
    for batch in (512, 64):
        benches = [shoal.bench("examples/lenet5.net", batch)["samples_per_s"]]
        train = shoal.train(batch, folder / "bench.safetensors")
        benches.append(shoal.bench("examples/lenet5.net", batch)["samples_per_s"])
        rows.append({"batch": batch, "train_samples_per_s": train, "bench_samples_per_s": statistics.mean(benches)})
    return rows


def first_update(shoal, cases):
    """Memory and time to the first update of LeNet-5 at 512. A peer's are of the first thing that
    its process did, which is this case."""
    ours = shoal.bench("lenet5", 512)
    rows = {"Shoal": {"first_update_s": ours["first_update_s"], "resident_mb": ours["resident_mb"]}}
    for row in cases[0]["tried"]:
        if row["threads"] == THREADS and "failed" not in row and row["peer"] not in rows:
            rows[row["peer"]] = {k: row[k] for k in ("mode", "first_update_s", "resident_mb")}
    return rows


def matrix_products(folder):
    """Our matrix product beside other libraries': the lines that `bench/gemm` prints, rows {"m", "n",
    "k", "ta", "tb", "library", "gflops"}."""
    try:
        return json_lines([HERE / "gemm", folder, "--json"], BENCH_SECONDS=str(GEMM_SECONDS))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"bench: no matrix products: {error}", file=sys.stderr)
        return []


def first_line(*command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.partition("\n")[0]
    except OSError:
        return "none"


def main():
    python, out = sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
    folder = out.parent
    shoal = Shoal(pathlib.Path(sys.argv[1]).resolve(), folder)
    (folder / "peers.log").unlink(missing_ok=True)
    start = time.monotonic()
    report = {"date": datetime.date.today().isoformat(), "seconds": SECONDS, "windows": WINDOWS,
              "loss_tolerance": LOSS_TOLERANCE, "machine": machine() | {"compiler": first_line("cc", "--version"), "load_before": os.getloadavg()[0]}}
    peers = {name: [Peer(python, script, n, folder) for n in sorted({THREADS, 1}, reverse=True)]
             for name, script in PEERS.items()}
    report["cases"] = [measure_case(case, shoal, peers) for case in CASES]
    report["versions"] = {name: processes[0].version for name, processes in peers.items()}
    report["versions"]["Shoal"] = first_line(str(shoal.path), "--version")
    for processes in peers.values():
        for peer in processes:
            peer.close()
    report["threads"] = threads_against_one(shoal)
    report["kernels"] = kernels_compared(shoal)
    report["training"] = training_against_bench(shoal, folder)
    report["first_update"] = first_update(shoal, report["cases"])
    report["matrix_products"] = matrix_products(folder)
    report["peak_gflops"] = shoal.peak_gflops
    report["took_s"] = time.monotonic() - start
    report["warning"] = shoal.warning
    out.write_text(json.dumps(report, indent=1))
    others = [f"{row['peer']}, {row['mode']}, {case['title']}, batch {case['batch']}: {row['failed']}"
              for case in report["cases"] for row in case["tried"] if not row.get("difference", 0) <= LOSS_TOLERANCE]
    if others:
        sys.exit("bench: not all peers do the same work\n" + "\n".join(others))


main()
