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
  release: (piece: Piece) => void;
}

/**
 * Holds pieces until their company has rested: one of each company is released at a time, in order. Each company that
 * holds some has one timer, so that a piece costs the same however many companies rest.
 */
export function createHeldPieces<Piece>({
  restMs,
  after,
  release,
}: HeldDeps<Piece>): HeldPieces<Piece> {
  const byCompany = new Map<string, Fifo<Piece>>();
  let size = 0;

  function wait(companyId: string, pieces: Fifo<Piece>): void {
    after(Math.max(1, Math.ceil(restMs(companyId))), () => {
      if (restMs(companyId) > 0) wait(companyId, pieces);
      else releaseFirst(companyId, pieces);
    });
  }
  function releaseFirst(companyId: string, pieces: Fifo<Piece>): void {
    const piece = pieces.shift();
    if (pieces.size() === 0) byCompany.delete(companyId);
    else wait(companyId, pieces);
    if (piece === undefined) return;
    size -= 1;
    release(piece);
  }

  return {
    tryHold(companyId, piece) {
      const held = byCompany.get(companyId);
      if (!held && restMs(companyId) === 0) return false;
      const pieces = held ?? createFifo<Piece>();
      pieces.push(piece);
      size += 1;
      if (held) return true;
      byCompany.set(companyId, pieces);
      wait(companyId, pieces);
      return true;
    },
    size: () => size,
  };
}
