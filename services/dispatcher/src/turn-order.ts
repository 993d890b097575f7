import type { Lane, Line } from './endpoint-line.ts';

/** The fast lanes share their sockets; the slow lane has its own. */
export type Pool = 'fast' | 'slow';

/** Endpoints with somebody waiting who may start, in turn. */
export interface TurnOrder {
  /** To the end of the order, unless it stands in it already. */
  add: (line: Line, lane: Lane) => void;
  remove: (line: Line, lane: Lane) => void;
  /** Takes out who is next. */
  next: (pool: Pool) => { line: Line; lane: Lane } | null;
}

/** One fast turn in four goes to a retry when first attempts wait as well. */
const RETRY_EVERY = 4;

export function poolOf(lane: Lane): Pool {
  return lane === 'slow' ? 'slow' : 'fast';
}

export function createTurnOrder(): TurnOrder {
  const order: Record<Lane, Set<Line>> = { first: new Set(), retry: new Set(), slow: new Set() };
  let contested = 0;

  function nextFastLane(): Lane {
    if (order.retry.size === 0) return 'first';
    if (order.first.size === 0) return 'retry';
    contested += 1;
    return contested % RETRY_EVERY === 0 ? 'retry' : 'first';
  }

  return {
    add: (line, lane) => order[lane].add(line),
    remove: (line, lane) => order[lane].delete(line),
    next(pool) {
      const lane = pool === 'slow' ? 'slow' : nextFastLane();
      const [line] = order[lane];
      if (!line) return null;
      order[lane].delete(line);
      return { line, lane };
    },
  };
}
