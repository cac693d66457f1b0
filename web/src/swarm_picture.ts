// swarm_picture.ts: the swarm of a job: a strip of the data set for every member, darker the more of a part
// it has; squares that say who sent how much to whom; a bar of what came from the server and from each other;
// and the same as a table.

import { fitted, placeTip, startDrawing } from "./canvas";
import { colour, eachFrame, h, setText } from "./dom";
import { bytes, count } from "./format";
import {
  flowsOf,
  fromEachOther,
  gridAt,
  gridOf,
  hereText,
  inOrder,
  isSwarm,
  leftOutText,
  shades,
  swarmText,
  type Flow,
  type Grid,
} from "./swarm";
import { Table, textColumn } from "./table";
import type { Swarm, SwarmMember } from "./types";

const rowHeight = 20;
const stripHeight = 12;
const headHeight = 24; // of the squares, so that both have the same head
const gridMax = 420;

function membersTable(swarm: () => Swarm | null): Table<SwarmMember> {
  const amount = (title: string, of: (member: SwarmMember) => number, hide?: "phone" | "tablet") => ({
    title,
    width: "8rem",
    phoneWidth: "6.8rem",
    kind: "number" as const,
    fill: textColumn<SwarmMember>((member) => bytes(of(member))),
    sort: of,
    ...(hide ? { hide } : {}),
  });
  return new Table<SwarmMember>({
    label: "Members of the swarm",
    empty: "There are none.",
    rowHeight: 36,
    key: (member) => member.id,
    columns: [
      {
        title: "Name",
        width: "auto",
        fill: textColumn((member) => member.name),
        sort: (member) => member.name,
      },
      {
        title: "Has",
        width: "5rem",
        phoneWidth: "3.3rem",
        kind: "number",
        fill: textColumn((member) => {
          const now = swarm();
          return now ? hereText(now, member) : "";
        }),
        sort: (member) => member.here,
      },
      amount("From server", (member) => member.from_server),
      amount("From peers", (member) => member.from_peers),
      amount("To peers", (member) => member.to_peers, "phone"),
      {
        title: "Blamed by",
        width: "7rem",
        kind: "number",
        fill: textColumn((member) => count(member.blamed)),
        sort: (member) => member.blamed,
        hide: "phone",
        hint: "How many others say that it sent wrong parts",
      },
    ],
  });
}

function picture(label: string): HTMLCanvasElement {
  return h("canvas", { role: "img", "aria-label": `${label}. The table below says the same.` });
}

export class SwarmPicture {
  readonly node: HTMLElement;
  private swarm: Swarm | null = null;
  private members: SwarmMember[] = [];
  private flows: Flow[] = [];
  private readonly text = h("p");
  private readonly fromServer = h("span", { class: "server" });
  private readonly fromPeers = h("span", { class: "peers" });
  private readonly bar = h(
    "div",
    { class: "splitbar", "aria-hidden": "true" },
    this.fromServer,
    this.fromPeers,
  );
  private readonly strips = picture("Which parts of the data each member has");
  private readonly stripsTip = h("div", { class: "tip", hidden: true });
  private readonly stripsBox = h("div", { class: "drawn" }, this.strips, this.stripsTip);
  private readonly squares = picture("Who sent how much to whom");
  private readonly squaresTip = h("div", { class: "tip", hidden: true });
  private readonly squaresBox = h("div", { class: "drawn" }, this.squares, this.squaresTip);
  private readonly pictures = h(
    "div",
    { class: "swarmgrid" },
    h(
      "div",
      {
        class: "scroller swarmbox",
        tabindex: 0,
        role: "region",
        "aria-label": "Parts of the data, by member",
      },
      this.stripsBox,
    ),
    this.squaresBox,
  );
  private readonly leftOut = h("p", { class: "muted small", hidden: true });
  private readonly table = membersTable(() => this.swarm);
  private readonly whole: HTMLElement;
  private readonly draw = eachFrame(() => this.drawNow());
  private readonly sizes = new ResizeObserver(() => this.draw());

  constructor() {
    this.whole = h(
      "div",
      { class: "stack", hidden: true },
      this.bar,
      this.pictures,
      h(
        "ul",
        { class: "legend" },
        h("li", null, h("span", { class: "swatch shade" }), "a part of the data: none of it to all"),
        h("li", null, h("span", { class: "swatch server" }), "from the server"),
        h("li", null, h("span", { class: "swatch unit" }), "from each other"),
        h("li", null, "Squares: a row receives, a column sends (S: the server)"),
      ),
      this.leftOut,
      h("details", null, h("summary", null, "As a table"), this.table.node),
    );
    this.node = h("div", { class: "stack" }, this.text, this.whole);
    this.strips.addEventListener("mousemove", (event) => this.pointStrip(event));
    this.strips.addEventListener("mouseleave", () => (this.stripsTip.hidden = true));
    this.squares.addEventListener("mousemove", (event) => this.pointSquare(event));
    this.squares.addEventListener("mouseleave", () => (this.squaresTip.hidden = true));
    this.sizes.observe(this.stripsBox);
    this.sizes.observe(this.squaresBox);
  }

  // Whether there is something to see.
  get isShown(): boolean {
    return this.swarm !== null && isSwarm(this.swarm);
  }

  set(swarm: Swarm): void {
    this.swarm = swarm;
    this.members = inOrder(swarm.members);
    this.flows = flowsOf(swarm);
    setText(this.text, swarmText(swarm));
    this.whole.hidden = !this.isShown;
    if (!this.isShown) return;
    const peers = fromEachOther(swarm);
    this.bar.hidden = swarm.sent + swarm.received === 0;
    setShare(this.fromServer, 1 - peers);
    setShare(this.fromPeers, peers);
    const squares = gridOf(this.members.length, gridMax);
    this.pictures.style.setProperty("--squares", `${gridWidth(squares, this.members.length)}px`);
    setText(this.leftOut, leftOutText(swarm));
    this.leftOut.hidden = this.leftOut.textContent === "";
    this.table.set(this.members);
    this.draw();
  }

  repaint(): void {
    this.draw();
  }

  close(): void {
    this.sizes.disconnect();
  }

  private drawNow(): void {
    if (!this.isShown) return;
    this.drawStrips();
    this.drawSquares();
  }

  // ---- strips ----

  private nameWidth(): number {
    return Math.min(this.stripsBox.clientWidth * 0.32, 150);
  }

  private drawStrips(): void {
    const width = this.stripsBox.clientWidth;
    if (width === 0) return;
    const context = startDrawing(this.strips, width, headHeight + this.members.length * rowHeight);
    if (!context) return;
    const left = this.nameWidth();
    const ink = colour("ink");
    context.fillStyle = colour("muted");
    context.fillText("Has of the data", left, headHeight / 2);
    this.members.forEach((member, i) => {
      const name = fitted(context, `${i + 1}  ${member.name}`, left - 8);
      context.fillStyle = ink;
      context.fillText(name, 0, headHeight + (i + 0.5) * rowHeight);
    });
    const back = colour("line");
    const full = colour("accent");
    this.members.forEach((member, i) => {
      const y = headHeight + i * rowHeight + (rowHeight - stripHeight) / 2;
      context.fillStyle = back;
      context.fillRect(left, y, width - left, stripHeight);
      context.fillStyle = full;
      drawStrip(context, shades(member.cells), left, y, width - left);
    });
    context.globalAlpha = 1;
  }

  private pointStrip(event: MouseEvent): void {
    const member = this.members[Math.floor((event.offsetY - headHeight) / rowHeight)];
    this.stripsTip.hidden = !member || !this.swarm;
    if (!member || !this.swarm) return;
    const { chunks } = this.swarm;
    this.stripsTip.replaceChildren(
      h("div", { class: "muted" }, member.name),
      h("div", null, `has ${count(member.here)} of ${count(chunks)} chunks`),
      h("div", null, `${bytes(member.from_server)} from the server, ${bytes(member.from_peers)} from others`),
      h("div", null, `${bytes(member.to_peers)} to others`),
    );
    placeTip(this.stripsTip, event, this.stripsBox.clientWidth);
  }

  // ---- squares ----

  private grid(): Grid {
    return gridOf(this.members.length, Math.min(this.squaresBox.clientWidth, gridMax));
  }

  private drawSquares(): void {
    if (this.squaresBox.clientWidth === 0) return;
    const grid = this.grid();
    const { cell, label } = grid;
    const width = gridWidth(grid, this.members.length);
    const height = Math.ceil(label + this.members.length * cell);
    const context = startDrawing(this.squares, width, height);
    if (!context) return;
    const gap = cell >= 6 ? 1 : 0;
    this.drawEmpty(context, grid, gap);
    const server = colour("second");
    const peers = colour("accent");
    for (const flow of this.flows) {
      context.globalAlpha = 0.15 + 0.85 * flow.weight;
      context.fillStyle = flow.column === 0 ? server : peers;
      context.fillRect(label + flow.column * cell, label + flow.row * cell, cell - gap, cell - gap);
    }
    context.globalAlpha = 1;
    if (label > 0) this.drawNumbers(context, grid);
  }

  // Nobody sends to itself: those squares are no squares.
  private drawEmpty(context: CanvasRenderingContext2D, { cell, label }: Grid, gap: number): void {
    const rows = this.members.length;
    const width = (rows + 1) * cell;
    context.fillStyle = colour("raised");
    context.fillRect(label, label, width, rows * cell);
    context.fillStyle = colour("line");
    for (let i = 0; i < rows; i++) context.fillRect(label + (i + 1) * cell, label + i * cell, cell, cell);
    for (let i = 1; i <= rows + 1; i++) {
      context.fillRect(label + i * cell - gap, label, gap, rows * cell);
      if (i <= rows) context.fillRect(label, label + i * cell - gap, width, gap);
    }
  }

  private drawNumbers(context: CanvasRenderingContext2D, { cell, label }: Grid): void {
    context.fillStyle = colour("muted");
    context.textAlign = "center";
    for (let column = 0; column <= this.members.length; column++)
      context.fillText(column === 0 ? "S" : String(column), label + (column + 0.5) * cell, label / 2);
    context.textAlign = "right";
    for (let row = 0; row < this.members.length; row++)
      context.fillText(String(row + 1), label - 6, label + (row + 0.5) * cell);
    context.textAlign = "left";
  }

  private pointSquare(event: MouseEvent): void {
    const at = gridAt(this.grid(), this.members.length, event.offsetX, event.offsetY);
    const to = at && this.members[at[0]];
    const from = at && (at[1] === 0 ? "the server" : this.members[at[1] - 1]?.name);
    const isItself = at !== null && at[1] === at[0] + 1;
    this.squaresTip.hidden = !to || !from || isItself;
    if (!at || !to || !from || isItself) return;
    const flow = this.flows.find((one) => one.row === at[0] && one.column === at[1]);
    this.squaresTip.replaceChildren(
      h("div", { class: "muted" }, `${from} to ${to.name}`),
      h("div", null, flow ? bytes(flow.bytes) : "nothing"),
    );
    placeTip(this.squaresTip, event, this.squaresBox.clientWidth);
  }
}

function setShare(part: HTMLElement, share: number): void {
  part.hidden = share === 0;
  part.style.flexGrow = String(share);
}

function gridWidth({ cell, label }: Grid, members: number): number {
  return Math.ceil(label + (members + 1) * cell);
}

// Each part as wide as its share, from one whole pixel to another, so that no seams are seen.
function drawStrip(
  context: CanvasRenderingContext2D,
  parts: number[],
  left: number,
  y: number,
  width: number,
): void {
  parts.forEach((shade, i) => {
    if (shade === 0) return;
    const from = Math.round(left + (i * width) / parts.length);
    const to = Math.round(left + ((i + 1) * width) / parts.length);
    context.globalAlpha = shade;
    context.fillRect(from, y, to - from, stripHeight);
  });
}
