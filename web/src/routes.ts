// routes.ts: which page a path leads to. Pure.

export type Route =
  | { page: "overview" }
  | { page: "host"; from: number | null }
  | { page: "search"; from: number | null }
  | { page: "agent"; from: number | null }
  | { page: "job"; id: number }
  | { page: "compare"; jobs: number[] }
  | { page: "work" }
  | { page: "access" }
  | { page: "missing" };

export const comparedMax = 8; // as many as there are colours

// "3,5,7": numbers of jobs, each once; what is none is left out.
export function jobsIn(text: string): number[] {
  const numbers = text
    .split(",")
    .filter((word) => /^[1-9][0-9]{0,15}$/.test(word))
    .map(Number);
  return [...new Set(numbers)].slice(0, comparedMax);
}

export function routeOf(path: string, search = ""): Route {
  const parts = path.split("/").filter((part) => part !== "");
  const [first, second] = parts;
  if (first === undefined || (first === "workers" && parts.length === 1)) return { page: "overview" };
  if (first === "jobs" && parts.length === 2 && /^[1-9][0-9]{0,15}$/.test(second as string)) {
    return { page: "job", id: Number(second) };
  }
  if (parts.length > 1) return { page: "missing" };
  if (first === "host" || first === "search" || first === "agent") {
    const from = Number(new URLSearchParams(search).get("from"));
    return { page: first, from: Number.isInteger(from) && from > 0 ? from : null };
  }
  if (first === "compare")
    return { page: first, jobs: jobsIn(new URLSearchParams(search).get("jobs") ?? "") };
  if (first === "work" || first === "access") return { page: first };
  return { page: "missing" };
}
