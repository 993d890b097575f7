import { excessOf, nextRestFactor } from './when-companies-rest.ts';

/**
 * Companies rest after work that keeps the process or MongoDB busy, so that none of them takes most of a
 * busy gateway that others use too (docs/decisions/0022-companies-take-turns-in-the-gateway.md).
 */
export interface CompanyRests {
  /** Takes note of a request of this company. It counts as present for a second. */
  note: (companyId: string) => void;
  /** Adds to the work of a company, in milliseconds of the process. */
  charge: (companyId: string, workMs: number) => void;
  /** Adds to the work of a company what it costs to receive, store, read or send this many bytes. */
  chargeBytes: (companyId: string, bytes: number) => void;
  /** How long the company has to rest from now on, in milliseconds; 0 when it may work. */
  restMs: (companyId: string) => number;
  /**
   * How long a company pauses between two parts of work that it was charged for before, in milliseconds: as long as
   * the last part took (`workMs`), and up to 4 times as long in a busy process. 0 while no other company is present.
   */
  pauseMs: (companyId: string, workMs: number) => number;
  /** To be called ten times a second, with the part of the time since then in which the process was busy. */
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

/** Forgets companies that are no longer present, and lets earlier work count less. Returns the work of all. */
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
