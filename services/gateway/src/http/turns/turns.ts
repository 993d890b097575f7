import { createFairQueue } from '@posthorn/platform/async/batching/fair-queue.ts';
import type { CompanyRests } from './company-rests.ts';
import { createHeldPieces } from './held-pieces.ts';

/**
 * Takes the turn of the company of a request; resolves when it has come. `laterMs` is work of the process that follows
 * from this piece and is not part of it: the company is charged for it too.
 */
export type TakeTurn = (laterMs?: number) => Promise<void>;

/**
 * Companies take turns with work that keeps the process busy for milliseconds: a part of a long list, a
 * large body. Each round of the event loop does a few pieces of it, and all other work that is ready.
 */
export interface Turns {
  /** Resolves when it is the turn of the company. It ends with the first `await` after it. */
  take: (companyId: string) => Promise<void>;
  /** How many pieces of work wait. */
  waiting: () => number;
}

/**
 * How much time a company may take before the next one has its turn. Time is charged, not pieces: a body of
 * 256 KiB takes 3 ms and a short list 0.1 ms, and both would count as one piece.
 */
const QUANTUM_MS = 1;
/**
 * The time for pieces in one round, about two of the longest. With only one piece in each round, a
 * company got ten turns a second beside one that kept the process busy: its short lists waited for 8 s.
 */
const ROUND_MS = 4;
/** What a piece reads is decoded in a later round, so time alone does not limit them. */
const MAX_PIECES = 8;

interface Piece {
  companyId: string;
  begin: () => void;
}

export interface TurnDeps {
  /** Calls the functions in their order in the next round of the event loop, each once: setImmediate. */
  inNextRound: (run: () => void) => void;
  /** Calls the function once, after this many milliseconds: setTimeout. */
  after: (ms: number, run: () => void) => void;
  rests: Pick<CompanyRests, 'restMs' | 'charge'>;
  monotonicMs: () => number;
}

/** A company that has to rest gets its turn afterwards. */
export function createTurns({ inNextRound, after, rests, monotonicMs }: TurnDeps): Turns {
  const queue = createFairQueue<Piece>(QUANTUM_MS);
  const held = createHeldPieces({ restMs: rests.restMs, after, release: enqueue });
  let isPlanned = false;

  function enqueue(piece: Piece): void {
    queue.push(piece.companyId, piece);
    if (!isPlanned) planRound();
  }
  /** Plans a function for each piece: the promises of a piece settle before the next function is called. */
  function planRound(): void {
    isPlanned = queue.size() > 0;
    if (!isPlanned) return;
    const round: Round = { usedMs: 0, running: null };
    for (let n = 0; n < MAX_PIECES; n += 1) {
      inNextRound(() => {
        endPiece(round);
        if (round.usedMs < ROUND_MS) beginPiece(round);
      });
    }
    inNextRound(() => {
      endPiece(round);
      planRound();
    });
  }
  function beginPiece(round: Round): void {
    const piece = queue.next();
    if (!piece) return;
    queue.charge(0, true);
    round.running = { companyId: piece.companyId, startedMs: monotonicMs() };
    piece.begin();
  }
  function endPiece(round: Round): void {
    if (!round.running) return;
    const { companyId, startedMs } = round.running;
    const tookMs = monotonicMs() - startedMs;
    queue.chargeKey(companyId, tookMs);
    rests.charge(companyId, tookMs);
    round.usedMs += tookMs;
    round.running = null;
  }

  return {
    take: (companyId) =>
      new Promise((resolve) => {
        const piece: Piece = { companyId, begin: resolve };
        if (!held.tryHold(companyId, piece)) enqueue(piece);
      }),
    waiting: () => queue.size() + held.size(),
  };
}

/** One round of the event loop, with the piece of work that has begun last. */
interface Round {
  usedMs: number;
  running: { companyId: string; startedMs: number } | null;
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
