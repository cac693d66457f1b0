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
