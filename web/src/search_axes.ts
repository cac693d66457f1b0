// search_axes.ts: the axes of the plots of a search: ranges that one bad trial does not spoil, ticks, and a
// place between 0 and 1 for every value of a setting. Pure.

import { figure, short, tidy } from "./format";
import type { Trial } from "./search_trials";
import type { Setting } from "./search_types";

export interface Tick {
  at: number; // 0 to 1
  text: string;
}

export interface Axis {
  name: string;
  ticks: Tick[];
  place(value: Setting | null | undefined): number; // 0 to 1; NaN: it has none
  isScore?: boolean; // it shows the scores, and no setting
}

const wordTicksMax = 12;
const logFrom = 20; // the largest by the smallest, from which an axis is logarithmic

// From the smallest to the largest, but no further than once the spread of nine tenths beyond it.
export function robustRange(values: number[]): [number, number] {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length === 0) return [0, 1];
  const at = (part: number): number => sorted[Math.round(part * (sorted.length - 1))] as number;
  const spread = at(0.95) - at(0.05);
  const room = spread > 0 ? spread : Math.max(at(1) - at(0), 0);
  const low = Math.max(at(0), at(0.05) - room);
  const high = Math.min(at(1), at(0.95) + room);
  return low < high
    ? [low, high]
    : [low - (Math.abs(low) * 0.01 || 0.5), high + (Math.abs(high) * 0.01 || 0.5)];
}

// Round numbers between two others, about so many.
export function niceTicks(low: number, high: number, about: number): number[] {
  const step = niceStep((high - low) / Math.max(about, 1));
  if (!(step > 0)) return [low];
  const ticks: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++)
    ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

function niceStep(raw: number): number {
  if (!(raw > 0) || !Number.isFinite(raw)) return 0;
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * ([1, 2, 5].find((n) => n * power >= raw * 0.999) ?? 10);
}

// Powers of ten, with the twos and fives where there is room.
export function logTicks(low: number, high: number, about: number): number[] {
  const decades = Math.log10(high / low);
  const steps = decades > about ? [1] : decades * 3 > about * 1.5 ? [1] : [1, 2, 5];
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const n of steps) {
      const tick = Number((n * 10 ** power).toPrecision(12));
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  return ticks.length > 1 ? ticks : [low, high];
}

export function tickText(value: number): string {
  const size = Math.abs(value);
  if (size >= 1000) return short(value).replace(/\.0(?=[kMG])/, "");
  return size !== 0 && size < 0.001 ? value.toExponential(0) : tidy(value);
}

// Short texts, or longer ones where short ones would be the same.
function tickTexts(ticks: number[]): string[] {
  const texts = ticks.map(tickText);
  return new Set(texts).size === texts.length ? texts : ticks.map(figure);
}

function ticksAt(ticks: number[], place: (value: number) => number): Tick[] {
  const texts = tickTexts(ticks);
  return ticks.map((tick, i) => ({ at: place(tick), text: texts[i] as string }));
}

function clamp(n: number): number {
  return Math.min(Math.max(n, 0), 1);
}

export function linearAxis(name: string, low: number, high: number, about: number): Axis {
  const place = (value: number): number => clamp((value - low) / (high - low || 1));
  return {
    name,
    ticks: ticksAt(niceTicks(low, high, about), place),
    place: (value) => (typeof value === "number" && Number.isFinite(value) ? place(value) : NaN),
  };
}

export function logAxis(name: string, low: number, high: number, about: number): Axis {
  const span = Math.log(high / low) || 1;
  const place = (value: number): number => clamp(Math.log(Math.max(value, low) / low) / span);
  return {
    name,
    ticks: ticksAt(logTicks(low, high, about), place),
    place: (value) => (typeof value === "number" && Number.isFinite(value) ? place(value) : NaN),
  };
}

export function wordAxis(name: string, words: string[]): Axis {
  const places = new Map(words.map((word, i) => [word, words.length > 1 ? i / (words.length - 1) : 0.5]));
  const every = Math.ceil(words.length / wordTicksMax);
  return {
    name,
    ticks: words
      .map((word, i) => ({ at: places.get(word) as number, text: word, shown: i % every === 0 }))
      .filter((tick) => tick.shown)
      .map(({ at, text }) => ({ at, text })),
    place: (value) => (value === null || value === undefined ? NaN : (places.get(String(value)) ?? NaN)),
  };
}

// An axis for numbers: logarithmic where they differ much.
export function numberAxis(name: string, values: number[], about: number): Axis {
  const [low, high] = rangeOf(values);
  if (low > 0 && high / low >= logFrom) return logAxis(name, low, high, about);
  if (low < high) return linearAxis(name, low, high, about);
  const room = Math.abs(low) * 0.1 || 0.5;
  return linearAxis(name, low - room, high + room, about);
}

// Math.min(...values) has too many arguments where there are many.
export function rangeOf(values: number[]): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}

function settingAxis(name: string, trials: Trial[]): Axis | null {
  const seen = new Set<Setting>();
  for (const trial of trials) {
    const value = trial.settings[name];
    if (value !== undefined) seen.add(value);
  }
  if (seen.size < 2) return null;
  const values = [...seen];
  if (values.every((value): value is number => typeof value === "number")) {
    const sorted = values.sort((a, b) => a - b);
    // A few choices of numbers are as far apart as words are.
    if (sorted.length <= 6) {
      const axis = wordAxis(name, sorted.map(String));
      return { ...axis, ticks: axis.ticks.map((tick) => ({ ...tick, text: tickText(Number(tick.text)) })) };
    }
    return numberAxis(name, sorted, 5);
  }
  return wordAxis(name, values.map(String).sort());
}

// One axis for every setting that was tried with more than one value, and the score at the end.
export function axesOf(trials: Trial[], scoreName: string): Axis[] {
  const names: string[] = [];
  const known = new Set<string>();
  for (const trial of trials)
    for (const name of Object.keys(trial.settings))
      if (!known.has(name)) {
        known.add(name);
        names.push(name);
      }
  const axes = names.map((name) => settingAxis(name, trials)).filter((axis): axis is Axis => axis !== null);
  const scores = trials.flatMap((trial) => (trial.score === null ? [] : [trial.score]));
  const [low, high] = robustRange(scores);
  return scores.length === 0 ? axes : [...axes, { ...linearAxis(scoreName, low, high, 5), isScore: true }];
}

// The places of every trial on every axis, one row a trial.
export function placesOf(trials: Trial[], axes: Axis[]): Float32Array {
  const places = new Float32Array(trials.length * axes.length);
  trials.forEach((trial, t) => {
    axes.forEach((axis, a) => {
      places[t * axes.length + a] = axis.place(axis.isScore ? trial.score : trial.settings[axis.name]);
    });
  });
  return places;
}

// The row whose line is nearest to a point between two axes; -1: none is near. `at`: axes from the left,
// 1.5 is in the middle between the second and the third. `y` and `most` as places are.
export function nearestLine(places: Float32Array, axes: number, at: number, y: number, most: number): number {
  const left = Math.min(Math.max(Math.floor(at), 0), axes - 1);
  const right = Math.min(left + 1, axes - 1);
  const part = at - left;
  let nearest = -1;
  let distance = most;
  for (let row = 0; row * axes < places.length; row++) {
    const a = places[row * axes + left] as number;
    const b = places[row * axes + right] as number;
    const far = Math.abs(a + (b - a) * part - y); // NaN is never nearer
    if (far < distance) {
      distance = far;
      nearest = row;
    }
  }
  return nearest;
}

// The point that is nearest to another one, within `most`; -1: none.
export function nearestPoint(xs: Float32Array, ys: Float32Array, x: number, y: number, most: number): number {
  let nearest = -1;
  let distance = most * most;
  for (let i = 0; i < xs.length; i++) {
    const dx = (xs[i] as number) - x;
    const dy = (ys[i] as number) - y;
    const far = dx * dx + dy * dy;
    if (far <= distance) {
      distance = far;
      nearest = i;
    }
  }
  return nearest;
}
