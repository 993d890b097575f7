import { startTicker } from '@posthorn/platform/async/loop.ts';
import { createFairQueue, createFifo, type Fifo } from '@posthorn/platform/async/fair-queue.ts';
import { performance } from 'node:perf_hooks';

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

interface TurnDeps {
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

/** How often the share of busy time is measured. */
const RESTS_EVERY_MS = 100;

/** Creates the turns of companies, and the rests between them. They hold until the process ends. */
export function startTurns(monotonicMs: () => number): { turns: Turns; rests: CompanyRests } {
  const rests = createCompanyRests(monotonicMs);
  const after = (ms: number, run: () => void): void => void setTimeout(run, ms);
  const turns = createTurns({ inNextRound: setImmediate, after, rests, monotonicMs });
  let before = performance.eventLoopUtilization();
  startTicker(RESTS_EVERY_MS, () => {
    const now = performance.eventLoopUtilization();
    rests.tick(performance.eventLoopUtilization(now, before).utilization);
    before = now;
  });
  return { turns, rests };
}

/** Pieces of work of companies that rest. */
interface HeldPieces<Piece> {
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

/**
 * Companies rest after work that keeps the process or MongoDB busy, so that none of them takes most of a
 * busy gateway that others use too (docs/decisions/0022-companies-take-turns-in-the-gateway.md).
 */
export interface CompanyRests {
  /** Notes a request of this company, which counts as present for a second. */
  note: (companyId: string) => void;
  /** Adds to the work of a company, in milliseconds of the process. */
  charge: (companyId: string, workMs: number) => void;
  /** Adds the cost of receiving, storing, reading or sending this many bytes to the work of a company. */
  chargeBytes: (companyId: string, bytes: number) => void;
  /** How long the company has to rest from now on, in milliseconds; 0 when it may work. */
  restMs: (companyId: string) => number;
  /**
   * How long a company pauses between two parts of work that it was charged for before, in milliseconds: as long as
   * the last part took (`workMs`), and up to 4 times as long in a busy process. 0 while no other company is present.
   */
  pauseMs: (companyId: string, workMs: number) => number;
  /** Expects a call ten times a second, with the share of the time since the last one in which the process was busy. */
  tick: (busyPart: number) => void;
}

/** The longest rest: one very large response must not stop its company for long. */
const MAX_REST_MS = 2_000;
/**
 * The longest pause, as a multiple of the work before it. With 4, a message to 10,000 webhooks is published in less than
 * the 2 s (MAX_REST_MS) for which its company rests; with 8, messages were accepted faster than they were published.
 */
const MAX_PAUSE = 4;
/** A company counts as present for this long after its last request. */
const PRESENT_MS = 1_000;
/** At each tick the work of a company is multiplied by this, so that most of what counts was done in the last second. */
const KEPT_PER_TICK = 0.9;
/**
 * One millisecond for each 32 KiB stands for what the timed pieces of work leave out: decoding,
 * decrypting, storing and sending, in the process and in MongoDB. An estimate.
 */
const BYTES_PER_MS = 32_768;

/** The work that is charged for so many bytes, in milliseconds. */
export function workMsOf(bytes: number): number {
  return bytes / BYTES_PER_MS;
}

interface Company {
  seenAtMs: number;
  workMs: number;
  restsUntilMs: number;
}

export function createCompanyRests(monotonicMs: () => number): CompanyRests {
  const companies = new Map<string, Company>();
  let allWorkMs = 0;
  let factor = 0;

  function companyOf(companyId: string): Company {
    const known = companies.get(companyId);
    if (known) return known;
    const company = { seenAtMs: monotonicMs(), workMs: 0, restsUntilMs: 0 };
    companies.set(companyId, company);
    return company;
  }
  function charge(companyId: string, workMs: number): void {
    const company = companyOf(companyId);
    company.workMs += workMs;
    allWorkMs += workMs;
    const excess = excessOf(company.workMs / allWorkMs, companies.size);
    if (factor === 0 || excess === 0) return;
    const nowMs = monotonicMs();
    const fromMs = Math.max(nowMs, company.restsUntilMs);
    company.restsUntilMs = Math.min(fromMs + workMs * factor * excess, nowMs + MAX_REST_MS);
  }
  return {
    note(companyId) {
      companyOf(companyId).seenAtMs = monotonicMs();
    },
    charge,
    chargeBytes: (companyId, bytes) => {
      charge(companyId, workMsOf(bytes));
    },
    restMs(companyId) {
      const company = companies.get(companyId);
      if (company === undefined || factor === 0) return 0;
      return Math.max(0, company.restsUntilMs - monotonicMs());
    },
    pauseMs(companyId, workMs) {
      const others = companies.size - (companies.has(companyId) ? 1 : 0);
      return others === 0 ? 0 : workMs * Math.min(MAX_PAUSE, Math.max(1, factor));
    },
    tick(busyPart) {
      factor = nextRestFactor(factor, busyPart);
      allWorkMs = age(companies, monotonicMs());
    },
  };
}

/** Forgets companies that are no longer present, and reduces the weight of earlier work. Returns the work of all. */
function age(companies: Map<string, Company>, nowMs: number): number {
  let allWorkMs = 0;
  for (const [companyId, company] of companies) {
    if (nowMs - company.seenAtMs >= PRESENT_MS && company.restsUntilMs <= nowMs) {
      companies.delete(companyId);
      continue;
    }
    company.workMs *= KEPT_PER_TICK;
    allWorkMs += company.workMs;
  }
  return allWorkMs;
}

/**
 * An ordinary request waits for two or three rounds of the event loop. With a process that was busy for
 * half of the time, nine of ten took up to 2.2 times as long as with an idle one, and up to 1.6 times
 * when it was busy for a third; at nine tenths the median was 16 times as long.
 */
const BUSY = 0.4;
/** Rests become shorter while the process is busy for less than this part of the time. Between the two they stay. */
const CALM = 0.3;
const MAX_FACTOR = 16;
/** A factor below this becomes 0: rests of less than a twentieth of the work change nothing. */
const MIN_FACTOR = 0.05;

/**
 * Returns how long companies rest after their work, as a multiple of it, for the next tenth of a second.
 * It grows while the process is busy for more than two fifths of the time, and falls when it is calm.
 */
export function nextRestFactor(factor: number, busyPart: number): number {
  if (busyPart > BUSY) return Math.min(MAX_FACTOR, factor * 1.5 + 0.1);
  if (busyPart > CALM) return factor;
  const less = factor * 0.8;
  return less < MIN_FACTOR ? 0 : less;
}

/**
 * Returns the part of a company's work that is beyond its fair share, 0 to 1. `share` is its part of the
 * work of all companies, and `present` is how many of them there are. A company that is alone is never beyond
 * its share, nor are companies that all work alike: these may fill the process.
 */
export function excessOf(share: number, present: number): number {
  if (!(share > 0)) return 0;
  return Math.max(0, (share - 1 / present) / share);
}
