"""scaling_page.py: writes docs/scaling.md from what the experiments found.

    scaling_page.py FOLDER OUT.md     (FOLDER: BUILD/scaling, with NAME.json of every experiment that ran)

An experiment that has not run leaves a line that says how to run it."""
import json
import pathlib
import sys

from markup import number, table


def percent(x, sign=""):
    return "" if x is None else f"{100 * x:{sign}.0f}%"


def megabytes(x):
    return "" if x is None else f"{x / 1e6:,.1f} MB" if x < 1e9 else f"{x / 1e9:.2f} GB"


def measured(report):
    """When, on what, and for how long."""
    m = report["machine"]
    return (f"Measured on {report['date']}: {m['cpu']}, {m['processors']} processors, {m['memory_gb']:.0f} GB of memory, "
            f"{m['kernel']}; {report['windows']} windows of {report['seconds']:g} s where windows are named; "
            f"{report['took_s'] / 60:.0f} minutes in all; load before it began {report['load_before']:.1f}.")


# ---- sections ---------------------------------------------------------------------------


def ps_section(report):
    rows = [[{"lenet5": "LeNet-5", "large": "dense"}[r["model"]], megabytes(r["model_bytes"]),
             number(r["contributions_per_s"]), f"{r['bits_per_s'] / 1e9:.1f} ({r['min'] / 1e9:.1f} to {r['max'] / 1e9:.1f})",
             f"**{percent(r['share'])}**"] for r in report["rows"]]
    return f"""Two workers that compute in almost no time push contributions (f32) to one parameter server on loopback and pull
its weights, in async mode. Bytes are those that it received and sent. iperf3, one stream, in turn with it:
{report['iperf3_bits_per_s'] / 1e9:.1f} Gbit/s ({report['iperf3_min'] / 1e9:.1f} to {report['iperf3_max'] / 1e9:.1f}).

{table(["model", "size", "contributions/s", "push + pull, Gbit/s", "share of iperf3"], rows)}"""


def ddp_section(report):
    rows = [[r["name"], number(r["one"]), number(r["two"]), f"**{r['speedup']:.2f}**"] for r in report["rows"]]
    return f"""LeNet-5. One thread a worker, every one with batches of {report['batch']} of its own; batches a second of all together.
With "threads", workers and the parameter server are threads of one process (`--transport threads`) and hand each other
weights and contributions in memory. With "tcp" they are processes, with connections over loopback, as they would be on
machines of their own; so is PyTorch's DistributedDataParallel over gloo. PyTorch {report['torch']}. The speedup is the
median over windows of one pair each.

{table(["", "1 worker, batches/s", "2 workers, batches/s", "speedup"], rows)}"""


def seed001_section(report):
    exact = {r["sha256"] for r in report["rows"] if r["mode"] in ("alone", "sync")}
    rows = [[r["mode"], r["workers"] or "", r["ps"] or "", f"{r['seconds']:.1f}",
             "" if r["waited_s"] is None else f"{r['waited_s']:.1f}", f"{r['loss']:.4f}", f"{r['accuracy']:.4f}"]
            for r in report["rows"]]
    same = "are the same to the last bit" if len(exact) == 1 else f"differ: {len(exact)} different results"
    return f"""{report['iterations']:,} iterations in all of LeNet-5 on Fashion-MNIST, batch 192, whoever does them: with two
workers each does half of them. Seconds are those of training. "Waiting" has workers that wait {1000 * report['batch_s']:.1f} ms
a batch, which is what computing it takes on one thread: the time of the same cluster on machines of its own, where the
{report['machine']['processors']} processors here are not shared. The weights of `sync` and of one machine {same}.

{table(["mode", "workers", "parameter servers", "seconds", "waiting, s", "test loss", "test accuracy"], rows)}

The tutorial's figures: 92.45 s for 1000 iterations by one, 51.41 s for 500 each by two, 34.25 s for 333 each by three;
its captions count parameter servers where its text counts workers, so both are here."""


def scaling_table(rows):
    lines = [[r["mode"], f"{r['workers']:,}", r["how"], number(r["batches_per_s"]), number(r["speedup"]),
              number(r["speedup_alone"]), percent(r["efficiency"]),
              "" if r["bytes_per_s"] is None else megabytes(r["bytes_per_s"]),
              number(r["simulated_batches_per_s"]), number(r["simulated_speedup"]), percent(r["difference"], "+")]
             for r in rows]
    return table(["mode", "workers", "how", "batches/s", "speedup", "against one machine", "efficiency", "bytes/s",
                  "simulated, batches/s", "speedup", "difference"], lines)


def run_section(run):
    first = run["rows"][0]
    nets = {"lenet5": "LeNet-5", "lstm-ptb": "LSTM"}
    return f"""#### {nets[first['net']]}, batch {first['batch']}, {first['transport']}, {first['wire']}, {first['ps']} parameter server{'s' if first['ps'] > 1 else ''}, links {first['links']}

One thread takes {1000 * first['batch_seconds']:.1f} ms a batch.

![speedup]({run['picture']})

{scaling_table(run['rows'])}"""


def best_of_fifty(runs):
    rows = [r | {"run": run} for run in runs for r in run["rows"] if r["workers"] == 50]
    lines = []
    for r in sorted(rows, key=lambda r: -(r["speedup_alone"] or 0)):
        lines.append([r["mode"], r["wire"], r["ps"], r["how"], number(r["speedup"]), number(r["speedup_alone"]),
                      number(r["simulated_speedup"])])
    return table(["mode", "wire", "parameter servers", "how", "speedup", "against one machine", "simulated"], lines)


def seed002_section(report):
    runs = "\n\n".join(run_section(run) for run in report["runs"])
    shaped = "\n\n".join(run_section(run) for run in report["shaped"])
    return f"""Every worker trains batches of its own: batches/s = data x epochs x workers / (batch x time), summed over workers,
and the speedup is that of W workers over that of one in the same mode (equations 4.1 and 4.2). "Against one machine"
is over one thread without a cluster. Rows are "computed" up to the number of processors, one thread a worker; past that
workers wait as long as computing takes and send real messages: "waited". The processors are shared by all processes of
a cluster, so messages of many workers cost more here than on machines of their own. "Simulated" is the same cores in
virtual time, with the time of a batch, the size of messages and a parameter server's time for one measured in the same
run; the difference is from the real row.

### On loopback

{runs}

### With links of 1 Gbit/s

Every worker and parameter server in a network namespace, with a link of 1 Gbit/s each way to a switch. Rows of 50
workers, the best first:

{best_of_fifty(report['shaped'])}

{shaped}

### More than this machine can run

{run_section(report['many'])}"""


def seed003_section(report):
    names = {"rate": "learning rate", "epochs": "epochs", "batch": "batch"}
    parts = []
    for what, rows in report["tables"].items():
        lines = [[r["value"], *(f"{a:.2f}" for a in r["theirs"]), *(f"{a:.4f}" for a in r["ours"]),
                  f"{r['same_samples']:.4f}"] for r in rows]
        parts.append(table([names[what], "theirs: 0", "1", "2", "ours: 0", "1", "2", "2, same samples"], lines))
    d = report["default"]
    return f"""Test accuracy on MNIST of a perceptron, 784-100-10 with sigmoids, for 0, 1 and 2 workers beside the host, in async
mode. What a table does not vary is rate {d['rate']}, {d['epochs']} epochs, batch {d['batch']}. As in the dissertation every worker brings the
full data: W machines see W times the samples of the given epochs. The last column has two additional workers at the
samples of the host alone: there additional workers save time and not samples.

""" + "\n\n".join(parts)


SECTIONS = [
    ("ps", "One parameter server beside iperf3", ps_section),
    ("ddp", "Two workers beside PyTorch", ddp_section),
    ("seed001", "The same iterations on more machines", seed001_section),
    ("seed002", "1 to 50 workers, and 10,000", seed002_section),
    ("seed003", "Accuracy by learning rate, epochs and batch", seed003_section),
]


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    parts = ["""# Scaling

What clusters of Shoal do, measured by one command an experiment; each writes its part of this page. `BENCH_SECONDS`
and `BENCH_WINDOWS` say how long and how often is measured."""]
    for name, title, section in SECTIONS:
        path = folder / f"{name}.json"
        parts.append(f"## {title}\n\n`bench/{name} build`")
        if path.exists():
            report = json.loads(path.read_text())
            parts.append(f"{section(report)}\n\n{measured(report)}")
        else:
            parts.append("Not measured yet.")
    out.write_text("\n\n".join(parts) + "\n")


main()
