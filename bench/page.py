"""page.py: writes docs/benchmarks.md from what compare.py measured.

    page.py IN.json OUT.md
"""
import json
import pathlib
import sys

from markup import number, table


def spread(how):
    return f"{number(how['batches_per_s'])} ({number(how['min'])} to {number(how['max'])})"


def share(case, how, peak):
    return f"{100 * how['batches_per_s'] * case['gflop_a_batch'] / peak:.0f}%"


def threads(count):
    return "1 thread" if count == 1 else f"{count} threads"


def best_peer(case):
    return max(case["peers"].values(), key=lambda how: how["batches_per_s"], default=None)


def main_table(report):
    names, peak = list(report["versions"]), report["peak_gflops"]
    names.remove("Shoal")
    rows = []
    for case in report["cases"]:
        row = [case["title"], case["batch"], f"**{spread(case['shoal'])}**", share(case, case["shoal"], peak)]
        for name in names:
            how = case["peers"].get(name)
            row.append(f"{spread(how)}, {share(case, how, peak)}; {how['mode']}, {threads(how['threads'])}"
                       if how else "none")
        best = best_peer(case)
        row.append(f"{case['shoal']['batches_per_s'] / best['batches_per_s']:.2f}" if best else "")
        rows.append(row)
    return table(["network", "batch", "Shoal", "of the peak", *names, "Shoal / best peer"], rows)


def doubts(report):
    """What says that the numbers are not to be trusted, each a paragraph."""
    said = [f"**The peak is in doubt:** {report['warning']}."] if report["warning"] else []
    others = [f"{row['peer']}, {row['mode']}, {threads(row['threads'])}: {case['title']}, batch {case['batch']}"
              for case in report["cases"] for row in case["tried"] if is_other(row, report)]
    if others:
        said.append("**Not all of this is the same work:** the first ten losses of these modes are not Shoal's, and they "
                    f"are left out of the table: {'; '.join(others)}.")
    return "".join(f"{text}\n\n" for text in said)


def is_other(row, report):
    return not row.get("difference", 0) <= report["loss_tolerance"]


def losses_section(report):
    """Of each peer the mode and number of threads that are farthest off, left out ones included."""
    names, rows = [name for name in report["versions"] if name != "Shoal"], []
    for case in report["cases"]:
        cells = []
        for name in names:
            of_peer = [row for row in case["tried"] if row["peer"] == name and "losses" in row]
            worst = max(of_peer, key=lambda row: row["difference"], default=None)
            cells.append(f"{worst['losses'][-1]:.6f} ({100 * worst['difference']:.2f}%)" if worst else "none")
        rows.append([case["title"], case["batch"], f"{case['losses'][0]:.6f}", f"{case['losses'][-1]:.6f}", *cells])
    return table(["network", "batch", "first loss", "Shoal's tenth", *names], rows)


def tried_table(report):
    rows = []
    for case in report["cases"]:
        for row in case["tried"]:
            result = number(row["batches_per_s"]) if "batches_per_s" in row else f"failed: {row['failed']}"
            rows.append([case["title"], case["batch"], row["peer"], row["mode"], row["threads"],
                         result.replace("|", "/")])
    return table(["network", "batch", "peer", "mode", "threads", "batches/s"], rows)


def threads_section(report):
    one = report["threads"]["1"]["batches_per_s"]
    rows = [[name, spread(how), f"{how['batches_per_s'] / one:.2f}"] for name, how in report["threads"].items()]
    return table(["threads", "batches/s", "against one"], rows)


def kernels_section(report):
    rows = []
    for what, by_kernels in report["kernels"].items():
        last, base = list(by_kernels.items())[-1]
        rows += [[what, name, spread(how), f"{how['batches_per_s'] / base['batches_per_s']:.2f}"]
                 for name, how in by_kernels.items()]
    return table(["network", "kernels", "batches/s", f"against {last}"], rows)


def training_section(report):
    rows = [[r["batch"], number(r["train_samples_per_s"]), number(r["bench_samples_per_s"]),
             f"{100 * r['train_samples_per_s'] / r['bench_samples_per_s']:.0f}%"] for r in report["training"]]
    return table(["batch", "`shoal train`, samples/s", "`shoal bench train`, samples/s", "share"], rows)


def first_update_section(report):
    rows = [[name, how.get("mode", ""), f"{how['resident_mb']:.0f} MB", f"{how['first_update_s']:.2f} s"]
            for name, how in report["first_update"].items()]
    return table(["", "mode", "resident memory", "start to first update"], rows)


def matrix_section(report):
    shapes, names = {}, []
    for row in report["matrix_products"]:
        shapes.setdefault((row["m"], row["n"], row["k"], row["ta"], row["tb"]), {})[row["library"]] = row["gflops"]
        if row["library"] not in names:
            names.append(row["library"])
    if not shapes:
        return "Not measured."
    rows = [[m, n, k, "a" if ta else "b" if tb else ""] + [f"{by[name]:.1f}" if name in by else "" for name in names]
            for (m, n, k, ta, tb), by in shapes.items()]
    return table(["m", "n", "k", "transposed", *names], rows)


def machine_lines(report):
    m = report["machine"]
    versions = ", ".join(f"{name} {version or 'not installed'}" for name, version in report["versions"].items()
                         if name != "Shoal")
    waiting = max(case["waiting_cpu_share"] for case in report["cases"])
    return "\n".join([
        f"- processor: {m['cpu']}, {m['processors']} processors, {m['memory_gb']:.0f} GB of memory",
        f"- peak: {report['peak_gflops']:.0f} GFLOP/s, what {m['processors']} threads reach with multiply-adds from "
        "registers alone, the best of all windows",
        f"- system: {m['kernel']}, {m['compiler']}",
        f"- versions: {report['versions']['Shoal']}, {versions}",
        f"- date: {report['date']}; {report['windows']} windows of {report['seconds']:g} s; "
        f"{report['took_s'] / 60:.0f} minutes in all; load before it began {m['load_before']:.1f}",
        f"- while Shoal ran, the waiting peers used at most {100 * waiting:.1f}% of a processor",
    ])


def page(report):
    return f"""# Benchmarks

`make bench` measures all of this and writes this page (and `build/bench.json`, the same as data). `BENCH_SECONDS=5
make bench` takes longer windows, `PEERS_VENV=FOLDER` a virtual environment that has the peers already.

## Training

Batches a second, higher is better: the median, and from the least to the most, of {report['windows']} windows. One
step is forward, backward and update, on data that lies in memory. Peers do the same work: the same layers, loss and
optimiser, from the same weights; [their losses](#the-same-losses) show it. Each is given the best of the modes below and
of one thread or all, found in a short search, and all take turns window by window.

{doubts(report)}{main_table(report)}

The percentage is the share of the machine's multiply-add peak. It counts the operations of the plain algorithm, the
same for all; a way to the result that needs fewer, such as Winograd's for convolutions, shows as a higher share.

What is not the same: Shoal carries the LSTM's state from batch to batch and fetches new samples for every batch; the
peers start from zeros and reuse one batch. PyTorch's LSTM adds a second bias, which is zero and does not learn.

{machine_lines(report)}

## Beside the table

### The same losses

Ten steps from the weights that Shoal begins with, on one batch that it made up (`shoal bench train --losses FILE`): the
tenth loss, and in brackets how far off any of the ten is, as a share of what they change the loss by. Of a peer's modes
the one that is farthest off stands here. More than {100 * report['loss_tolerance']:g}% is other work: then `make bench`
fails, and that mode is left out. What is below it is rounding: peers have their losses in single precision, and the
LSTM's ten steps change no more than the fourth digit.

{losses_section(report)}

### More threads: LeNet-5, batch 512

{threads_section(report)}

### Memory and first update: LeNet-5, batch 512

From the start of the program, with {threads(report['machine']['processors'])}. A peer's time includes the import of
its library.

{first_update_section(report)}

### Training against the benchmark: LeNet-5 on Fashion-MNIST

The second epoch of `shoal train`, which reads, shuffles and scales its data, against data made up in memory.

{training_section(report)}

### Instruction sets

{kernels_section(report)}

### Matrix products

GFLOP/s on one thread: c (m x n) = a (m x k) * b (k x n). `bench/gemm` measures them alone.

{matrix_section(report)}

## All modes that were tried

One window of {report['seconds'] / 2:g} s each, so less exact than the table above.

{tried_table(report)}
"""


pathlib.Path(sys.argv[2]).write_text(page(json.loads(pathlib.Path(sys.argv[1]).read_text())))
