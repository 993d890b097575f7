import { createFairQueue } from '@posthorn/platform/async/batching/fair-queue.ts';

/** Takes the turn of the company of a request; resolves when it has come. */
export type TakeTurn = () => Promise<void>;

/**
 * Companies take turns with work that keeps the process busy for milliseconds: a part of a long list, a
 * large body. Each round of the event loop does one piece of it, and all other work that is ready.
 */
export interface Turns {
  /** Resolves when it is the turn of the company. It ends with the first `await` after it. */
  take: (companyId: string) => Promise<void>;
  /** How many pieces of work wait. */
  waiting: () => number;
}

/** A company gives way to the next one after one piece of work. */
const QUANTUM = 1;

/** `inNextRound` calls the function once, in the next round of the event loop: setImmediate. */
export function createTurns(inNextRound: (run: () => void) => void): Turns {
  const queue = createFairQueue<() => void>(QUANTUM);

  function giveTurn(): void {
    const begin = queue.next();
    if (!begin) return;
    queue.charge(1, true);
    if (queue.size() > 0) inNextRound(giveTurn);
    begin();
  }

  return {
    take: (companyId) =>
      new Promise((resolve) => {
        queue.push(companyId, resolve);
        if (queue.size() === 1) inNextRound(giveTurn);
      }),
    waiting: queue.size,
  };
}

/** Returns the same parts. Each is read in a turn of its own. */
export async function* inTurns<Part>(
  parts: AsyncIterable<Part>,
  takeTurn: TakeTurn,
): AsyncGenerator<Part> {
  const reading = parts[Symbol.asyncIterator]();
  try {
    for (;;) {
      await takeTurn();
      const next = await reading.next();
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    await reading.return?.();
  }
}
