/** Bounds how many attempts are under way to one origin at once. */
export interface OriginSlots {
  /** Runs `work` when a slot is free; first come, first served. */
  within: <T>(origin: string, work: () => Promise<T>) => Promise<T>;
}

interface Line {
  running: number;
  waiting: (() => void)[];
}

/**
 * The line is here and not in the HTTP client, because the deadline of an attempt must begin when
 * its request does: one that timed out in a line would count as made, and nothing was sent.
 */
export function createOriginSlots(maxRunning: number): OriginSlots {
  const lines = new Map<string, Line>();

  async function enter(origin: string): Promise<Line> {
    const line = lines.get(origin) ?? { running: 0, waiting: [] };
    lines.set(origin, line);
    if (line.running < maxRunning) line.running += 1;
    else await new Promise<void>((resolve) => line.waiting.push(resolve));
    return line;
  }

  /** The slot goes to the next in line without becoming free in between. */
  function leave(origin: string, line: Line): void {
    const next = line.waiting.shift();
    if (next) {
      next();
      return;
    }
    line.running -= 1;
    if (line.running === 0) lines.delete(origin);
  }

  return {
    async within(origin, work) {
      const line = await enter(origin);
      try {
        return await work();
      } finally {
        leave(origin, line);
      }
    },
  };
}
