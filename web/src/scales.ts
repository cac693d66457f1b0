// scales.ts: how the position of a slider, 0 to 1000, becomes a value and back. Pure.

export interface Scale {
  min: number;
  max: number;
  whole: boolean;
  toValue(position: number): number;
  toPosition(value: number): number;
}

export const positions = 1000;

function clamp(n: number, min: number, max: number): number {
  return Math.min(Math.max(n, min), max);
}

// Two digits: 0.0234 becomes 0.023.
function tidy(n: number): number {
  return Number(n.toPrecision(2));
}

// Equal ways along the slider are equal factors.
export function logScale(min: number, max: number): Scale {
  const span = Math.log(max / min);
  return {
    min,
    max,
    whole: false,
    toValue: (position) => clamp(tidy(min * Math.exp((span * position) / positions)), min, max),
    toPosition: (value) => clamp((Math.log(clamp(value, min, max) / min) / span) * positions, 0, positions),
  };
}

// The same for whole numbers: every small one can be reached, large ones go in steps.
export function countScale(min: number, max: number): Scale {
  const span = Math.log(max / min);
  const round = (n: number): number => (n < 20 ? Math.round(n) : n < 100 ? Math.round(n / 5) * 5 : tidy(n));
  return {
    min,
    max,
    whole: true,
    toValue: (position) => clamp(round(min * Math.exp((span * position) / positions)), min, max),
    toPosition: (value) => clamp((Math.log(clamp(value, min, max) / min) / span) * positions, 0, positions),
  };
}

// Powers of two, as batch sizes are. Other numbers can be typed.
export function powerScale(min: number, max: number): Scale {
  const low = Math.log2(min);
  const span = Math.log2(max) - low;
  return {
    min,
    max,
    whole: true,
    toValue: (position) => clamp(2 ** Math.round(low + (span * position) / positions), min, max),
    toPosition: (value) =>
      clamp(((Math.log2(clamp(value, min, max)) - low) / span) * positions, 0, positions),
  };
}

// The next value up (1) or down (-1) that the slider can give: what an arrow key should do.
export function nextValue(scale: Scale, value: number, direction: 1 | -1): number {
  for (let at = Math.round(scale.toPosition(value)); at >= 0 && at <= positions; at += direction) {
    const next = scale.toValue(at);
    if ((next - value) * direction > 0) return next;
  }
  return value;
}

// Reads what was typed; a sentence when it cannot be taken.
export function readNumber(text: string, scale: Scale): number | string {
  const n = Number(text);
  if (text.trim() === "" || !Number.isFinite(n)) return "must be a number";
  if (scale.whole && !Number.isInteger(n)) return "must be a whole number";
  if (n < scale.min || n > scale.max) return `must be from ${scale.min} to ${scale.max}`;
  return n;
}
