// contents.ts: what stands on a long page, as a list of links: beside it where there is room, else behind one
// button at its top. Made of the headings of the cards, those that are hidden left out.

import { h, later, newId, replace } from "./dom";
import { fileName } from "./format";

const isWide = matchMedia("(min-width: 70.01rem)"); // there is room beside the page

const sectionsMin = 4; // fewer are in sight anyway

interface Section {
  heading: HTMLElement;
  title: string;
}

function idOf(heading: HTMLElement): string {
  heading.id ||= fileName(heading.textContent?.replace(/\(.*/, "").trim() || newId("part")).toLowerCase();
  return heading.id;
}

function sectionsOf(content: HTMLElement): Section[] {
  return [...content.querySelectorAll<HTMLElement>(".card h2")]
    .filter((heading) => heading.offsetParent !== null)
    .map((heading) => ({ heading, title: heading.dataset["title"] ?? heading.textContent ?? "" }));
}

export class Contents {
  readonly node: HTMLElement;
  private readonly list = h("ul");
  private readonly menu = h(
    "details",
    { class: "contentsmenu" },
    h("summary", null, "On this page"),
    this.list,
  );
  private titles = "";
  private readonly seen: IntersectionObserver;
  private readonly sizes: ResizeObserver;
  private wanted = location.hash.slice(1); // by the link that led here; ids need no escapes

  constructor(private readonly content: HTMLElement) {
    this.node = h("nav", { class: "contents", "aria-label": "On this page" }, this.menu);
    // What the list has follows from what is shown, and that changes how high the page is.
    this.sizes = new ResizeObserver(later(50, () => this.draw()));
    this.sizes.observe(content);
    this.seen = new IntersectionObserver(() => this.mark(), {
      threshold: [0, 1],
      rootMargin: "-80px 0px -50%",
    });
    this.menu.open = isWide.matches;
    isWide.addEventListener("change", this.fit);
  }

  close(): void {
    isWide.removeEventListener("change", this.fit);
    this.sizes.disconnect();
    this.seen.disconnect();
  }

  private readonly fit = (): void => {
    this.menu.open = isWide.matches;
  };

  private draw(): void {
    const sections = sectionsOf(this.content);
    const titles = sections.map(({ title }) => title).join("\n");
    if (titles !== this.titles) {
      this.titles = titles;
      this.menu.hidden = sections.length < sectionsMin;
      this.seen.disconnect();
      replace(this.list, ...sections.map((section) => this.item(section)));
      for (const { heading } of sections) this.seen.observe(heading);
    }
    const target = this.wanted === "" ? null : document.getElementById(this.wanted);
    if (!target) return;
    this.wanted = "";
    target.scrollIntoView();
  }

  private item({ heading, title }: Section): HTMLElement {
    const id = idOf(heading);
    const go = (event: Event): void => {
      event.preventDefault(); // the frame would take another hash for another page
      history.replaceState(null, "", `#${id}`);
      if (!isWide.matches) this.menu.open = false;
      heading.tabIndex = -1;
      heading.focus({ preventScroll: true });
      (heading.closest(".card") ?? heading).scrollIntoView();
    };
    return h("li", null, h("a", { href: `#${id}`, onclick: go }, title.replace(/ \(.*\)$/, "")));
  }

  // The section whose heading was passed last.
  private mark(): void {
    let at: HTMLElement | null = null;
    for (const { heading } of sectionsOf(this.content))
      if (heading.getBoundingClientRect().top < innerHeight / 3) at = heading;
    for (const link of this.list.querySelectorAll("a"))
      if (at && link.hash === `#${at.id}`) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
  }
}
