// processes.mjs: the programs that a test starts: a server and its volunteers, in a folder of their own. None
// of them outlives the test.

import { execFile, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const endAfterMs = 10_000; // who has not ended by itself by then is killed

export class Processes {
  #running = new Map(); // the process's name to the process

  constructor(program) {
    this.program = program;
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), "shoal-browser-"));
    process.on("exit", () => this.#killAll());
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(1));
  }

  // A server on a free port; its address.
  async serve() {
    const words = ["serve", "--listen", "127.0.0.1:0", "--data-dir", this.file("server"), "--json"];
    const server = this.#start("server", words, "pipe");
    const log = fs.createWriteStream(this.#log("server"), { flags: "a" });
    return await new Promise((resolve, reject) => {
      const lines = createInterface({ input: server.stdout });
      lines.on("line", (line) => {
        log.write(`${line}\n`);
        if (line.includes('"url"')) resolve(JSON.parse(line).url);
      });
      lines.on("close", () => reject(new Error("the server ended")));
    });
  }

  // A volunteer with one core that works whatever else the machine does; `more` are options of its own instead.
  work(url, name, more = ["--no-pause", "--on-battery"]) {
    const options = ["--name", name, "--yes", ...more, "--cores", "1", "--cache", this.file(name)];
    this.#start(name, ["work", url, ...options], "file");
  }

  // What a command with --json says.
  async ask(...words) {
    const { stdout } = await promisify(execFile)(this.program, [...words, "--json"]);
    return JSON.parse(stdout);
  }

  // The last line of what one says that says several.
  async askLast(...words) {
    const { stdout } = await promisify(execFile)(this.program, [...words, "--json"]);
    return JSON.parse(stdout.trim().split("\n").pop());
  }

  file(name) {
    return path.join(this.folder, name);
  }

  // The last lines that each of them wrote.
  lastWords() {
    const logs = fs.readdirSync(this.folder).filter((name) => name.endsWith(".log"));
    return logs.map((name) => {
      const lines = fs.readFileSync(this.file(name), "utf8").split("\n");
      return `${name}:\n${lines.slice(-12).join("\n")}`;
    });
  }

  // Ends all, those who came last first, and removes the folder.
  async end() {
    for (const child of [...this.#running.values()].reverse()) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      const timer = setTimeout(() => child.kill("SIGKILL"), endAfterMs);
      child.kill("SIGTERM");
      await ended;
      clearTimeout(timer);
    }
    fs.rmSync(this.folder, { recursive: true, force: true });
  }

  #log(name) {
    return this.file(`${name}.log`);
  }

  #start(name, words, stdout) {
    const log = fs.openSync(this.#log(name), "a");
    const child = spawn(this.program, words, { stdio: ["ignore", stdout === "pipe" ? "pipe" : log, log] });
    fs.closeSync(log);
    this.#running.set(name, child);
    child.on("error", (error) => {
      console.error(`${name}: ${error.message}`);
      this.#running.delete(name);
    });
    child.on("exit", () => this.#running.delete(name));
    return child;
  }

  #killAll() {
    for (const child of this.#running.values()) child.kill("SIGKILL");
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}
