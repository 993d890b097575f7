/** Something that must not happen, and examples of it. */
export interface Finding {
  what: string;
  count: number;
  examples: string[];
}

const EXAMPLES = 5;

/** Returns one finding with a count of all examples and the first of them, or nothing when there is no example. */
export function finding(what: string, examples: readonly string[]): Finding[] {
  if (examples.length === 0) return [];
  return [{ what, count: examples.length, examples: examples.slice(0, EXAMPLES) }];
}
