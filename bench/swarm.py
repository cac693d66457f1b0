"""swarm.py: simulated swarms beside the tree and the single server: a line of JSON each, and a plot.

    swarm.py run SHOAL OUT.jsonl      (runs `shoal sim --swarm ...`; 10,000 members take minutes)
    swarm.py plot IN.jsonl OUT.svg

Every run is 1 GB over links of 100 MB/s, as in the example of the dissertation on crowdsourced training."""
import json
import math
import subprocess
import sys

MEMBERS = {"peers": [10, 32, 100, 1000, 10000], "tree": [10, 32, 100, 1000, 10000], "server": [10, 32, 100, 1000]}
NAMES = {"peers": "swarm", "tree": "doubling tree", "server": "one server"}
COLOURS = {"peers": "#0072b2", "tree": "#d55e00", "server": "#777777"}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 440, 70, 130, 50, 60


def run(shoal, out):
    with open(out, "w") as lines:
        for way, sizes in MEMBERS.items():
            for members in sizes:
                command = [shoal, "sim", "--swarm", str(members), "--seed", "1", "--json"]
                if way != "peers":
                    command += ["--baseline", way]
                lines.write(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                lines.flush()


def plot(path, out):
    rows = [json.loads(line) for line in open(path)]
    x_of = lambda n: LEFT + (math.log10(n) - 1) / 3 * (WIDTH - LEFT - RIGHT)
    y_of = lambda s: HEIGHT - BOTTOM - (math.log10(s) - 0.9) / 4.3 * (HEIGHT - TOP - BOTTOM)
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           f'font-size="13" fill="#888">',
           f'<text x="{LEFT}" y="24" font-size="16">1 GB to N workers over links of 100 MB/s, simulated</text>']
    for power in range(1, 5):
        x = x_of(10**power)
        svg.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#888" opacity="0.25"/>')
        svg.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{10**power:,}</text>')
    for seconds, text in [(10, "10 s"), (100, "100 s"), (1000, "17 min"), (10000, "2.8 h"), (100000, "28 h")]:
        y = y_of(seconds)
        svg.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#888" opacity="0.25"/>')
        svg.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    svg.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 18}" text-anchor="middle">workers</text>')
    svg.append(f'<text x="{LEFT}" y="{TOP - 8}">until the last worker has everything</text>')
    for way, name in NAMES.items():
        points = sorted((r["members"], r["last_s"]) for r in rows if r["way"] == way)
        if not points:
            continue
        path_text = " ".join(f"{x_of(n):.1f},{y_of(s):.1f}" for n, s in points)
        svg.append(f'<polyline points="{path_text}" fill="none" stroke="{COLOURS[way]}" stroke-width="2"/>')
        svg += [f'<circle cx="{x_of(n):.1f}" cy="{y_of(s):.1f}" r="4" fill="{COLOURS[way]}"/>' for n, s in points]
        n, s = points[-1]
        svg.append(f'<text x="{x_of(n) + 10:.1f}" y="{y_of(s) + 4:.1f}" fill="{COLOURS[way]}">{name}</text>')
    svg.append("</svg>")
    open(out, "w").write("\n".join(svg) + "\n")


if __name__ == "__main__" and len(sys.argv) == 4:
    {"run": run, "plot": plot}[sys.argv[1]](sys.argv[2], sys.argv[3])
elif __name__ == "__main__":
    sys.exit(__doc__)
