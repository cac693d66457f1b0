// layers.ts: where the layers of a network go in its drawing. Pure.
//
// A layer's row is the length of the longest way to it from the input. The layers that lead on from one
// another stay in one column; a branch gets the next free one. An edge that passes rows goes down a column
// where nothing is in its way, or else in a lane of its own, right of all columns.

import type { Layer } from "./types";

export interface Place {
  row: number;
  column: number;
}

export type Way = { kind: "straight" } | { kind: "column"; column: number } | { kind: "lane"; lane: number };

export interface Edge {
  from: number;
  to: number;
  way: Way;
}

export interface Layout {
  places: Place[];
  edges: Edge[];
  rows: number;
  columns: number;
  lanes: number;
}

type Inputs = Pick<Layer, "inputs">;

function rowsOf(layers: Inputs[]): number[] {
  const rows: number[] = [];
  layers.forEach((layer, i) => {
    const before = layer.inputs.filter((from) => from >= 0 && from < i);
    rows.push(before.reduce((row, from) => Math.max(row, (rows[from] as number) + 1), 0));
  });
  return rows;
}

// Cells of a grid that are taken, by a layer or by an edge that passes.
class Grid {
  private readonly taken = new Set<string>();
  take(row: number, column: number): void {
    this.taken.add(`${row},${column}`);
  }
  isFree(row: number, column: number): boolean {
    return !this.taken.has(`${row},${column}`);
  }
  isFreeBetween(from: number, to: number, column: number): boolean {
    for (let row = from + 1; row < to; row++) if (!this.isFree(row, column)) return false;
    return true;
  }
  takeBetween(from: number, to: number, column: number): void {
    for (let row = from + 1; row < to; row++) this.take(row, column);
  }
}

function placeAll(layers: Inputs[], rows: number[], grid: Grid): Place[] {
  const places: Place[] = [];
  layers.forEach((layer, i) => {
    const row = rows[i] as number;
    const wished = layer.inputs
      .filter((from) => from >= 0 && from < i)
      .map((from) => (places[from] as Place).column);
    // Where branches meet, the way goes on in the leftmost.
    let column = wished.length > 0 ? Math.min(...wished) : 0;
    while (!grid.isFree(row, column)) column++;
    grid.take(row, column);
    places.push({ row, column });
  });
  return places;
}

export function layOut(layers: Inputs[]): Layout {
  const grid = new Grid();
  const rows = rowsOf(layers);
  const places = placeAll(layers, rows, grid);
  const laneEnds: number[] = []; // the row up to which a lane is taken
  const edges: Edge[] = [];
  const wayOf = (from: Place, to: Place): Way => {
    if (to.row - from.row <= 1) return { kind: "straight" };
    for (const column of [from.column, to.column]) {
      if (!grid.isFreeBetween(from.row, to.row, column)) continue;
      grid.takeBetween(from.row, to.row, column);
      return from.column === to.column ? { kind: "straight" } : { kind: "column", column };
    }
    let lane = laneEnds.findIndex((end) => end <= from.row);
    if (lane < 0) lane = laneEnds.length;
    laneEnds[lane] = to.row;
    return { kind: "lane", lane };
  };
  layers.forEach((layer, to) => {
    for (const from of layer.inputs) {
      if (from < 0 || from >= to) continue;
      edges.push({ from, to, way: wayOf(places[from] as Place, places[to] as Place) });
    }
  });
  return {
    places,
    edges,
    rows: rows.reduce((most, row) => Math.max(most, row + 1), 0),
    columns: places.reduce((most, place) => Math.max(most, place.column + 1), 0),
    lanes: laneEnds.length,
  };
}
