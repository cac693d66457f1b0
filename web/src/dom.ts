// dom.ts: elements in one line. Texts become text nodes: nothing that comes from elsewhere is read as HTML.

export type Child = Node | string | number | null | undefined | false;
type Value = string | number | boolean | null | undefined | ((event: never) => void);
export type Attributes = Record<string, Value>;

function fill(element: Element, attributes: Attributes | null, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, String(value));
  }
  append(element, ...children);
}

// h("button", { class: "main", onclick: start }, "Start")
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes | null = null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes | null = null,
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, attributes, children);
  return element;
}

export function append(element: Element, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "number" ? String(child) : child);
  }
}

export function replace(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, ...children);
}

// Touches the page only when the text is another one.
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function setClass(element: Element, name: string): void {
  if (element.className !== name) element.className = name;
}

let isAtOnce = false;
const putOff = new Set<() => void>(); // what waits for a frame or for a timer

// While it is printed there are no frames: pictures are drawn at once then, those out of sight, too.
export function drawsAtOnce(): boolean {
  return isAtOnce;
}

// What is put off is done first: otherwise paper would lack what has come a moment ago.
export function drawAtOnce(work: () => void): void {
  isAtOnce = true;
  try {
    for (const run of putOff) run();
    work();
  } finally {
    isAtOnce = false;
  }
}

interface Wait {
  begin(run: () => void): number;
  end(begun: number): void;
}

// A function that runs `work` once after the wait, however often it is called until then. `isAnew`: with each
// call the wait begins again.
function afterwards(work: () => void, wait: Wait, isAnew: boolean): () => void {
  let begun = 0;
  const run = (): void => {
    wait.end(begun);
    putOff.delete(run);
    work();
  };
  return () => {
    if (isAtOnce) {
      run();
      return;
    }
    if (putOff.has(run)) {
      if (!isAnew) return;
      wait.end(begun);
    }
    putOff.add(run);
    begun = wait.begin(run);
  };
}

const aFrame: Wait = {
  begin: (run) => requestAnimationFrame(run),
  end: (begun) => cancelAnimationFrame(begun),
};

const aTime = (ms: number): Wait => ({
  begin: (run) => window.setTimeout(run, ms),
  end: (begun) => clearTimeout(begun),
});

// A function that runs `work` once in the next frame, however often it is called until then.
export function eachFrame(work: () => void): () => void {
  return afterwards(work, aFrame, false);
}

// A function that runs `work` so many milliseconds after it was called, once, however often it is called until then.
export function within(ms: number, work: () => void): () => void {
  return afterwards(work, aTime(ms), false);
}

// A function that runs `work` when it was not called for so many milliseconds.
export function later(ms: number, work: () => void): () => void {
  return afterwards(work, aTime(ms), true);
}

let lastId = 0;
// For labels and descriptions that point at an element.
export function newId(prefix: string): string {
  return `${prefix}-${++lastId}`;
}

// Says a sentence to who cannot see the page.
export function announce(text: string): void {
  const region = document.getElementById("announcer");
  if (region) setText(region, text);
}

// The value of a colour that the style sheet names.
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
