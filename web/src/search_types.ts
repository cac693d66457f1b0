// search_types.ts: what the server says and takes about tables and searches. Times are seconds since 1970.

export const columnKinds = ["number", "category", "date", "text", "identifier", "constant"] as const;
export type ColumnKind = (typeof columnKinds)[number];

export interface TableColumn {
  name: string;
  kind: ColumnKind;
  guessed: ColumnKind;
  used: boolean; // as a feature
  missing: number;
  distinct: number;
  mean?: number | null;
  deviation?: number | null;
  min?: number | null;
  max?: number | null;
  quartiles?: (number | null)[];
  histogram?: number[]; // from min to max
  unit?: string;
  categories?: string[]; // the most frequent first
  counts?: number[];
  top?: string[]; // values to show
  warning: string;
}

export interface Dialect {
  encoding: string;
  delimiter: string;
  decimal: string;
  comment: string;
  header: boolean;
}

export interface Profile {
  file: string;
  dialect: Dialect;
  rows: number;
  ragged: number; // rows with too few or too many cells, left out
  ragged_line: number;
  columns: TableColumn[];
}

export interface Preview {
  profile: Profile;
  preview: (string | null)[][]; // the cells of the first rows
}

export interface SearchSpec {
  kind: "search";
  name?: string;
  data: string;
  target: string;
  columns?: Record<string, string>;
  dialect?: string;
  metric?: string;
  problem?: string;
  space?: string;
  scheduler?: string;
  budget_s?: number;
  trials?: number;
  folds?: number;
  valid?: number;
  test_share?: number;
  time_column?: string;
  epochs?: number;
  seed?: number;
  private?: boolean;
  workers_min?: number;
  workers_max?: number;
}

// How far a search is, in a job of that kind.
export interface SearchProgress {
  phase: "reads" | "tries" | "gathers" | "ended";
  share: number | null;
  spent_s: number;
  left_s: number | null;
  trials: number;
  units: number;
  best: number; // a trial; 0: none yet
  best_score: number | null;
  metric: string;
  higher_is_better: boolean;
  valid_score?: number | null; // of the model that was made, on the validation rows, which is too optimistic
  estimate?: number | null; // of the model, on rows that had no say in choosing it; null: not known
  estimate_error?: number | null; // its standard error
  test_score?: number | null; // of the model that was made, on rows that nothing has learned from
  test_rows?: number;
}

export type Setting = number | string;

export interface TrialResult {
  failed: boolean;
  score: number | null;
  scores: Record<string, number | null>;
  epochs: number;
  best_epoch: number;
  over: boolean;
  weights: number;
  seconds: number; // of this unit
  error: string;
}

// A finished unit: a trial brought to a rung.
export interface TrialRow {
  unit: number;
  trial: number;
  rung: number;
  worker: string;
  time: number;
  settings: Record<string, Setting>;
  result: TrialResult;
}

// epoch, training loss, score
export type CurvePoint = [number, number | null, number | null];

export interface TrialWithCurve extends TrialRow {
  curve: CurvePoint[];
}

export interface Insight {
  trials?: number;
  importance?: { setting: string; share: number }[];
  lessons?: (string | { setting: string; text: string })[];
  lessons_why?: string; // why there are none
  confusion?: { classes: string[]; counts: number[][] };
  residuals?: [number, number][]; // predicted, right
  columns?: { column: string; importance: number }[];
  columns_why?: string; // why some are not there
  members?: { trial: number; share: number }[];
  // valid: of the metric, or of all of them
  scores?: {
    valid?: number | null | Record<string, number | null>;
    estimate?: number | null;
    estimate_error?: number | null;
    test?: Record<string, number | null>;
    test_rows?: number;
  };
}

export interface Prediction {
  class?: string;
  probability?: number;
  probabilities?: Record<string, number>;
  value?: number;
}
