"""swarm.py: simulated swarms, on equal and on mixed links: a line of JSON each, and a plot.

    swarm.py run SHOAL OUT.jsonl [MEMBERS_MAX]    (runs `shoal sim --swarm ...`; 10,000 members take minutes)
    swarm.py plot IN.jsonl OUT.svg

On equal links every run is 1 GB over 100 MB/s, as in the example of the dissertation on crowdsourced training; on mixed
ones it is 100 MB (see docs/swarm.md). Beside the swarm stand a tree and a single server."""
import json
import math
import subprocess
import sys

MIXED = ["--mixed", "--bytes", "100000000", "--server-rate", "12.5e6", "--latency", "30"]
CHURN = ["--churn", "0.3"]
# Name, arguments, numbers of members.
RUNS = [
    ("swarm", [], [10, 32, 100, 1000, 10000]),
    ("doubling tree", ["--baseline", "tree"], [10, 32, 100, 1000, 10000]),
    ("one server", ["--baseline", "server"], [10, 32, 100, 1000]),
    ("30% come and go", CHURN, [32, 100, 1000, 10000]),
    ("mixed links", MIXED, [10, 32, 100, 1000, 10000]),
    ("mixed, 30% come and go", MIXED + CHURN, [32, 100, 1000, 10000]),
]
LABELS_ABOVE = ("swarm", "mixed, 30% come and go")  # on the right, where lines end close to each other
COLOURS = ["#0072b2", "#d55e00", "#777777", "#56b4e9", "#009e73", "#cc79a7"]
HEIGHT, TOP, BOTTOM, PANEL = 440, 70, 60, 390


def run(shoal, out, members_max="10000"):
    with open(out, "w") as lines:
        for name, arguments, sizes in RUNS:
            for members in (n for n in sizes if n <= int(members_max)):
                command = [shoal, "sim", "--swarm", str(members), "--seed", "1", "--json", *arguments]
                row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                lines.write(json.dumps({"name": name, **row}) + "\n")
                lines.flush()


class Panel:
    """One of the two plots: members from left to right, something else from the bottom up."""

    def __init__(self, svg, left, title, low, high, ticks):
        self.svg, self.left, self.low, self.high = svg, left, low, high
        svg.append(f'<text x="{left}" y="{TOP - 12}">{title}</text>')
        for power in range(1, 5):
            x = self.x_of(10**power)
            svg.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#888" opacity="0.25"/>')
            svg.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{10**power:,}</text>')
        for value, text in ticks:
            y = self.y_of(value)
            svg.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + PANEL}" y2="{y:.1f}" stroke="#888" opacity="0.25"/>')
            svg.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
        svg.append(f'<text x="{left + PANEL / 2}" y="{HEIGHT - 18}" text-anchor="middle">workers</text>')

    def x_of(self, members):
        return self.left + (math.log10(members) - 1) / 3 * PANEL

    def y_of(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def draw(self, points, name, colour, label_above):
        places = [(self.x_of(n), self.y_of(value)) for n, value in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        self.svg.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        self.svg += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in places]
        x, y = places[-1]
        self.svg.append(f'<text x="{x:.1f}" y="{y + (-9 if label_above else 19):.1f}" text-anchor="end" '
                        f'fill="{colour}">{name}</text>')


def plot(path, out):
    rows = [json.loads(line) for line in open(path)]
    width = 2 * PANEL + 230
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" font-family="sans-serif" '
           f'font-size="13" fill="#888">',
           '<text x="70" y="26" font-size="16">Data to N workers, simulated, until the last has everything</text>']
    ratios = [(r, f"{r:g}") for r in (1, 1.1, 1.2, 1.3, 1.5, 1.75, 2)]
    times = [(10, "10 s"), (100, "100 s"), (1000, "17 min"), (10000, "2.8 h"), (100000, "28 h")]
    left = Panel(svg, 70, "1 GB over equal links of 100 MB/s: seconds", 8, 160000, times)
    right = Panel(svg, PANEL + 160, "times the least possible", 0.97, 2.1, ratios)
    for (name, arguments, _), colour in zip(RUNS, COLOURS):
        points = sorted((r["members"], r["last_s"], r["ratio"]) for r in rows if r["name"] == name)
        if points and (not arguments or "--baseline" in arguments):
            left.draw([(n, s) for n, s, _ in points], name, colour, True)
        if points and "--baseline" not in arguments:
            right.draw([(n, ratio) for n, _, ratio in points], name, colour, name in LABELS_ABOVE)
    svg.append("</svg>")
    open(out, "w").write("\n".join(svg) + "\n")


if __name__ == "__main__" and len(sys.argv) >= 4 and sys.argv[1] in ("run", "plot"):
    {"run": run, "plot": plot}[sys.argv[1]](*sys.argv[2:])
elif __name__ == "__main__":
    sys.exit(__doc__)
