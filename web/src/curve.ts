// curve.ts: the numbers behind the curves: smoothing, thinning, rounds and epochs on one axis. Pure.

// A running mean that follows the last `span` or so values; gaps stay gaps. At first, where curves are
// steep, it follows fewer.
export function smooth(values: (number | null)[], span: number): (number | null)[] {
  let sum = 0;
  let weight = 0;
  return values.map((v, i) => {
    if (v === null) return null;
    const keep = 1 - 1 / Math.max(Math.min(span, 1 + i / 5), 1);
    sum = sum * keep + v;
    weight = weight * keep + 1;
    return sum / weight;
  });
}

// At most `max` points, evenly spread over the steps: one of every stretch of steps, which is as short as a
// power of two may be; the last one stays.
export function thin<T extends readonly [number, ...unknown[]]>(points: T[], max: number): T[] {
  if (points.length === 0) return [];
  const first = (points[0] as T)[0];
  const last = (points[points.length - 1] as T)[0];
  let stride = 1;
  while ((last - first) / stride > max - 2) stride *= 2;
  let stretch = -1;
  return points.filter((point) => {
    const its = Math.floor(point[0] / stride);
    const isNew = its !== stretch;
    stretch = its;
    return isNew || point[0] === last;
  });
}

// Adds points behind those that are there; points that are there already are left out.
export function addPoints<T extends readonly [number, ...unknown[]]>(
  points: T[],
  more: T[],
  max: number,
): T[] {
  const last = points.length > 0 ? (points[points.length - 1] as T)[0] : -1;
  return thin(points.concat(more.filter((p) => p[0] > last)), max);
}
