import { createFifo, type Fifo } from '@posthorn/platform/async/queues/fifo.ts';

/** Pieces of work of companies that rest. */
export interface HeldPieces<Piece> {
  /** Returns false, and does not hold the piece, when its company may work. */
  tryHold: (companyId: string, piece: Piece) => boolean;
  size: () => number;
}

interface HeldDeps<Piece> {
  /** How long a company has to rest from now on, in milliseconds. */
  restMs: (companyId: string) => number;
  /** Calls the function once, after this many milliseconds. */
  after: (ms: number, run: () => void) => void;
  monotonicMs: () => number;
  release: (piece: Piece) => void;
}

/** Holds pieces until their company has rested: one of each company is released at a time, in order. */
export function createHeldPieces<Piece>({
  restMs,
  after,
  monotonicMs,
  release,
}: HeldDeps<Piece>): HeldPieces<Piece> {
  const byCompany = new Map<string, Fifo<Piece>>();
  let size = 0;
  /** When the next timer ends; Infinity without one. */
  let plannedAtMs = Infinity;

  function plan(): void {
    if (size === 0) return;
    const soonestMs = Math.max(1, Math.ceil(Math.min(...[...byCompany.keys()].map(restMs))));
    const dueAtMs = monotonicMs() + soonestMs;
    if (dueAtMs >= plannedAtMs) return;
    plannedAtMs = dueAtMs;
    after(soonestMs, () => {
      if (plannedAtMs === dueAtMs) plannedAtMs = Infinity;
      releaseRested();
      plan();
    });
  }
  function releaseRested(): void {
    for (const [companyId, pieces] of byCompany) {
      if (restMs(companyId) > 0) continue;
      const piece = pieces.shift();
      if (pieces.size() === 0) byCompany.delete(companyId);
      if (piece === undefined) continue;
      size -= 1;
      release(piece);
    }
  }

  return {
    tryHold(companyId, piece) {
      const held = byCompany.get(companyId);
      if (!held && restMs(companyId) === 0) return false;
      const pieces = held ?? createFifo<Piece>();
      byCompany.set(companyId, pieces);
      pieces.push(piece);
      size += 1;
      plan();
      return true;
    },
    size: () => size,
  };
}
