// embed.mjs OUT.c PAGE_FOLDER MODEL.net...: writes the C file behind src/server/page_files.h: the page's
// files, compressed with gzip, and the texts of the example models.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";

const types = {
  "index.html": "text/html; charset=utf-8",
  "app.js": "text/javascript; charset=utf-8",
  "app.css": "text/css; charset=utf-8",
  "icon.svg": "image/svg+xml",
  "openapi.json": "application/json",
};

// The bytes of an array, twenty a line.
function numbers(bytes) {
  const lines = [];
  for (let i = 0; i < bytes.length; i += 20) lines.push(`  ${[...bytes.subarray(i, i + 20)].join(",")},`);
  return lines.join("\n");
}

// A C string; every character that is not plain is written as an octal number of three digits.
function quoted(text) {
  const plain = (byte) => byte >= 32 && byte < 127 && byte !== 34 && byte !== 92 && byte !== 63;
  const octal = (byte) => `\\${byte.toString(8).padStart(3, "0")}`;
  const lines = text.split(/(?<=\n)/).map((line) => {
    const bytes = [...Buffer.from(line, "utf8")];
    return `"${bytes.map((b) => (plain(b) ? String.fromCharCode(b) : octal(b))).join("")}"`;
  });
  return lines.length > 0 ? lines.join("\n    ") : '""';
}

function pageFile(folder, name, i) {
  const plain = readFileSync(join(folder, name));
  const etag = createHash("sha256").update(plain).digest("hex").slice(0, 16);
  const bytes = gzipSync(plain, { level: 9 });
  return {
    array: `static const unsigned char page_${i}[] = {\n${numbers(bytes)}\n};\n`,
    entry: `  {"/${name}", "${types[name]}", "\\"${etag}\\"", page_${i}, sizeof page_${i}},`,
  };
}

function modelEntry(path) {
  return `  {"${basename(path, ".net")}",\n    ${quoted(readFileSync(path, "utf8"))}},`;
}

const [out, folder, ...models] = process.argv.slice(2);
if (!out || !folder) {
  console.error("usage: node embed.mjs OUT.c PAGE_FOLDER MODEL.net...");
  process.exit(2);
}
const files = Object.keys(types).map((name, i) => pageFile(folder, name, i));
writeFileSync(
  out,
  `/* Written by web/embed.mjs. */
#include "server/page_files.h"

${files.map((file) => file.array).join("\n")}
const shoal_page_file shoal_page_files[] = {
${files.map((file) => file.entry).join("\n")}
};
const size_t shoal_page_files_count = sizeof shoal_page_files / sizeof shoal_page_files[0];

const shoal_example_model shoal_example_models[] = {
${models.map(modelEntry).join("\n")}
};
const size_t shoal_example_models_count = sizeof shoal_example_models / sizeof shoal_example_models[0];
`,
);
