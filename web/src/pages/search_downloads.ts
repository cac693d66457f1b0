// search_downloads.ts: what one can take away from a search: its files, and commands that go with them.

import { h } from "../dom";
import { fileName, shellWord } from "../format";
import { copyable, downloadButtons } from "../parts";
import { searchCommand } from "../search_spec";
import type { SearchSpec } from "../search_types";
import type { Job } from "../types";

// path: of the job, below the root of the interface.
export function searchDownloads(job: Job, path: string): HTMLElement {
  const spec = job.spec as Partial<SearchSpec>;
  const name = fileName(job.name);
  const { files } = job;
  const rows = shellWord('{"rows": [{"COLUMN": "VALUE"}]}');
  return h(
    "div",
    { class: "stack" },
    downloadButtons([
      { isThere: files.model, text: "model", path: `${path}/model`, name: `${name}.safetensors` },
      { isThere: files.onnx, text: "ONNX", path: `${path}/model.onnx`, name: `${name}.onnx` },
      {
        isThere: files.model,
        text: "table of trials",
        path: `${path}/trials.csv`,
        name: `${name}-trials.csv`,
      },
    ]),
    !files.model &&
      h("p", { class: "muted small" }, "The model is made when the search ends or is stopped."),
    h("p", { class: "muted small" }, "Predict the rows of a file with it; what prepares them is inside:"),
    copyable(
      `shoal predict ${name}.safetensors --input new.csv --output out.csv`,
      "The command that predicts a file",
    ),
    h("p", { class: "muted small" }, "The same search on one machine:"),
    copyable(searchCommand(spec), "The command that searches"),
    h("p", { class: "muted small" }, "Or ask the server, up to 10,000 rows at a time:"),
    copyable(`curl -d ${rows} ${location.origin}/api/v1${path}/predict`, "The request that predicts rows"),
    spec.space &&
      h(
        "details",
        null,
        h("summary", null, "What may be tried, as text"),
        h("pre", { tabindex: 0 }, spec.space),
      ),
  );
}
