// search_layers.ts: two canvases on one another: what there is, drawn when it changes, and what is pointed
// at or chosen, drawn as often as the pointer moves. With a box beside the pointer. What is out of sight is
// drawn when it comes into sight.

import { placeTip, startDrawing } from "./canvas";
import { drawsAtOnce, eachFrame, h } from "./dom";

export interface Drawn {
  base(context: CanvasRenderingContext2D, width: number, height: number): void;
  top(context: CanvasRenderingContext2D, width: number, height: number): void;
}

// A picture of trials of which some are chosen and one is pointed at, in it or in another view.
export abstract class TrialPicture {
  protected abstract layers: Layers;
  protected chosen: number[] = [];
  protected pointed = 0; // 0: none

  // hovered: told which one is pointed at in this picture.
  constructor(private readonly hovered: (trial: number) => void) {}

  mark(chosen: number[], pointed: number): void {
    this.chosen = chosen;
    this.pointed = pointed;
    this.layers.redrawTop();
  }

  repaint(): void {
    this.layers.draw();
  }

  close(): void {
    this.layers.close();
  }

  protected point(trial: number): void {
    if (trial === this.pointed) return;
    this.pointed = trial;
    this.layers.redrawTop();
    this.hovered(trial);
  }
}

// Colours of chosen trials; each is of the style sheet.
export const chosenColours = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `trial-${n}`);

export class Layers {
  readonly node: HTMLElement;
  readonly box: HTMLElement;
  private readonly under = h("canvas", { class: "under" });
  private readonly over = h("canvas", { class: "over" });
  private readonly tip = h("div", { class: "tip", hidden: true });
  private isSeen = false;
  private readonly waiting = new Set<keyof Drawn>();
  private readonly sizes = new ResizeObserver(() => this.draw());
  private readonly sight = new IntersectionObserver((entries) => this.see(entries), { rootMargin: "100px" });
  private readonly drawBase = eachFrame(() => this.paint(this.under, "base"));
  private readonly drawTop = eachFrame(() => this.paint(this.over, "top"));

  constructor(
    label: string,
    readonly height: number,
    private readonly drawn: Drawn,
    private readonly widthMin = 0,
  ) {
    this.box = h(
      "div",
      { class: "layers", role: "img", "aria-label": label },
      this.under,
      this.over,
      this.tip,
    );
    this.box.style.height = `${height}px`;
    const scrolled = { tabindex: 0, role: "region", "aria-label": `${label}, to be scrolled sideways` };
    this.node = h("div", { class: "scroller sideways", ...(widthMin > 0 ? scrolled : {}) }, this.box);
    this.sizes.observe(this.node);
    this.sight.observe(this.node);
    this.over.addEventListener("pointerleave", () => this.hideTip());
  }

  get width(): number {
    return Math.max(this.node.clientWidth, drawsAtOnce() ? 0 : this.widthMin); // paper does not scroll
  }

  // Where pointers are listened to.
  get surface(): HTMLCanvasElement {
    return this.over;
  }

  draw(): void {
    this.drawBase();
    this.drawTop();
  }

  redrawTop(): void {
    this.drawTop();
  }

  label(text: string): void {
    this.box.setAttribute("aria-label", text);
  }

  showTip(event: MouseEvent, ...lines: string[]): void {
    this.tip.replaceChildren(
      ...lines.map((line, i) => h("div", i === 0 ? { class: "tiphead" } : { class: "muted" }, line)),
    );
    this.tip.hidden = false;
    placeTip(this.tip, event, this.width);
  }

  hideTip(): void {
    this.tip.hidden = true;
  }

  close(): void {
    this.sizes.disconnect();
    this.sight.disconnect();
  }

  private see(entries: IntersectionObserverEntry[]): void {
    this.isSeen = entries[entries.length - 1]?.isIntersecting ?? false;
    if (!this.isSeen) return;
    if (this.waiting.has("base")) this.drawBase();
    if (this.waiting.has("top")) this.drawTop();
  }

  private paint(canvas: HTMLCanvasElement, layer: keyof Drawn): void {
    if ((!this.isSeen && !drawsAtOnce()) || !this.box.isConnected || this.node.clientWidth === 0) {
      this.waiting.add(layer);
      return;
    }
    this.waiting.delete(layer);
    this.box.style.width = `${this.width}px`;
    const context = startDrawing(canvas, this.width, this.height);
    if (context) this.drawn[layer](context, this.width, this.height);
  }
}
