// format.ts: numbers, times and names as people read them. Pure; `now` is passed in.

export const none = "–";

// 1,234,567
export function count(n: number): string {
  return Math.round(n)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

// 1 trial, 24 trials
export function counted(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

// As a sentence begins.
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// At most four characters and a letter: 950, 1.2k, 34k, 5.1M
export function short(n: number): string {
  if (!Number.isFinite(n)) return none;
  const size = Math.abs(n);
  for (const [unit, letter] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const) {
    if (size < unit * 0.9995) continue;
    const scaled = n / unit;
    return `${Math.abs(scaled) < 9.95 ? scaled.toFixed(1) : scaled.toFixed(0)}${letter}`;
  }
  if (size === 0 || size >= 9.95) return n.toFixed(0);
  return n.toFixed(1);
}

export function rate(samplesPerSecond: number | null): string {
  return samplesPerSecond === null || samplesPerSecond <= 0 ? none : short(samplesPerSecond);
}

// A loss or a metric: four digits that count.
export function value(n: number | null | undefined): string {
  if (n === null || n === undefined || !Number.isFinite(n)) return none;
  const size = Math.abs(n);
  if (size !== 0 && size < 0.001) return n.toExponential(2);
  if (size >= 10_000) return short(n);
  return n.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 4);
}

// The same where large numbers are compared: 58,321 and not 58k.
export function figure(n: number | null | undefined): string {
  if (n === null || n === undefined || !Number.isFinite(n)) return none;
  const size = Math.abs(n);
  return size >= 1e9 ? n.toExponential(4) : size >= 1000 ? count(n) : value(n);
}

// A number at an axis, without the zeros that say nothing.
export function tidy(n: number): string {
  return Math.abs(n) >= 10_000 ? short(n) : String(Number(n.toPrecision(4)));
}

export function percent(part: number): string {
  const p = part * 100;
  if (p > 0 && p < 0.1) return "<0.1%";
  return `${p < 10 && p > 0 ? p.toFixed(1) : p.toFixed(0)}%`;
}

export function bytes(n: number): string {
  for (const [unit, name] of [
    [1 << 30, "GB"],
    [1 << 20, "MB"],
    [1 << 10, "KB"],
  ] as const) {
    if (n >= unit) return `${(n / unit).toFixed(n / unit < 10 ? 1 : 0)} ${name}`;
  }
  return `${n} B`;
}

// 0.8 s, 42 s, 3 min 5 s, 2 h 10 min, 3 d 4 h
export function duration(seconds: number): string {
  if (seconds < 9.95) return `${Math.max(seconds, 0).toFixed(1)} s`;
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  const two = (large: number, name: string, small: number, smallName: string): string =>
    small ? `${large} ${name} ${small} ${smallName}` : `${large} ${name}`;
  if (s < 3600) return two(Math.floor(s / 60), "min", s % 60, "s");
  if (s < 86_400) return two(Math.floor(s / 3600), "h", Math.floor((s % 3600) / 60), "min");
  return two(Math.floor(s / 86_400), "d", Math.floor((s % 86_400) / 3600), "h");
}

export function lag(seconds: number): string {
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : duration(seconds);
}

export function ago(time: number, now: number): string {
  const s = now - time;
  return s < 5 ? "just now" : `${duration(Math.round(s)).split(" ").slice(0, 2).join(" ")} ago`;
}

const two = (n: number): string => String(n).padStart(2, "0");

export function clock(time: number): string {
  const d = new Date(time * 1000);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

export function date(time: number): string {
  const d = new Date(time * 1000);
  const day = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
  return `${day} ${two(d.getHours())}:${two(d.getMinutes())}`;
}

// The time of a day that is today, else the day too.
export function when(time: number, now: number): string {
  return date(time).slice(0, 10) === date(now).slice(0, 10) ? clock(time) : date(time);
}

// A name as part of a file name.
export function fileName(name: string): string {
  return name.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[-.]+|[-.]+$/g, "") || "model";
}

// A word for a shell, quoted where it must be.
export function shellWord(word: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}
