// window.ts: which rows of a long table are to be drawn. Pure.

export interface Window {
  first: number; // the first row that is drawn
  end: number; // one behind the last
  above: number; // pixels of the rows that are not drawn before and behind
  below: number;
}

export function windowOf(
  scrollTop: number,
  height: number,
  rowHeight: number,
  count: number,
  spare: number,
): Window {
  const top = Math.min(Math.max(scrollTop, 0), Math.max(count * rowHeight - height, 0));
  const first = Math.max(Math.floor(top / rowHeight) - spare, 0);
  const end = Math.min(Math.ceil((top + height) / rowHeight) + spare, count);
  return { first, end, above: first * rowHeight, below: (count - end) * rowHeight };
}

// The same where rows differ: row i is heightOf(i) high.
export function windowOfRows(
  scrollTop: number,
  height: number,
  heightOf: (i: number) => number,
  count: number,
  spare: number,
): Window {
  const tops = [0]; // and where the last one ends
  for (let i = 0; i < count; i++) tops.push((tops[i] as number) + heightOf(i));
  const whole = tops[count] as number;
  const top = Math.min(Math.max(scrollTop, 0), Math.max(whole - height, 0));
  const inside = (at: number): number => {
    let low = 0;
    for (let high = count; low < high;) {
      const middle = (low + high) >> 1;
      if ((tops[middle + 1] as number) <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const first = Math.max(inside(top) - spare, 0);
  const end = Math.min(inside(top + height) + 1 + spare, count);
  return { first, end, above: tops[first] as number, below: whole - (tops[end] as number) };
}
