/**
 * Delays the next slice of a company that uses more than its share of a busy gateway which others use too
 * (docs/decisions/0022-companies-take-turns-in-the-gateway.md).
 */
export interface Throttle {
  /** Notes a request of this company, which counts as present for a second. */
  note: (companyId: string) => void;
  /** Adds to the work of a company, in milliseconds of the process. */
  charge: (companyId: string, workMs: number) => void;
  /** Adds the cost of receiving, storing, reading or sending this many bytes to the work of a company. */
  chargeBytes: (companyId: string, bytes: number) => void;
  /** How long the company has to wait from now on, in milliseconds; 0 when it may work. */
  waitMs: (companyId: string) => number;
  /**
   * How long a company pauses between two parts of work that it was charged for before, in milliseconds: as long as
   * the last part took (`workMs`), and up to 4 times as long in a busy process. 0 while no other company is present.
   */
  pauseMs: (companyId: string, workMs: number) => number;
  /** Expects a call ten times a second, with the share of the time since the last one in which the process was busy. */
  tick: (busyPart: number) => void;
}

/** The longest wait: one very large response must not stop its company for long. */
const MAX_WAIT_MS = 2_000;
/**
 * The longest pause, as a multiple of the work before it. With 4, a message to 10,000 webhooks is published in less than
 * the 2 s (MAX_WAIT_MS) for which its company waits; with 8, messages were accepted faster than they were published.
 */
const MAX_PAUSE = 4;
/** A company counts as present for this long after its last request. */
const PRESENT_MS = 1_000;
/** At each tick the work of a company is multiplied by this, so that most of what counts was done in the last second. */
const KEPT_PER_TICK = 0.9;
/**
 * One millisecond for each 32 KiB stands for what the timed slices leave out: decoding,
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
  waitsUntilMs: number;
}

export function createThrottle(monotonicMs: () => number): Throttle {
  const companies = new Map<string, Company>();
  let allWorkMs = 0;
  let factor = 0;

  function companyOf(companyId: string): Company {
    const known = companies.get(companyId);
    if (known) return known;
    const company = { seenAtMs: monotonicMs(), workMs: 0, waitsUntilMs: 0 };
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
    const fromMs = Math.max(nowMs, company.waitsUntilMs);
    company.waitsUntilMs = Math.min(fromMs + workMs * factor * excess, nowMs + MAX_WAIT_MS);
  }
  return {
    note(companyId) {
      companyOf(companyId).seenAtMs = monotonicMs();
    },
    charge,
    chargeBytes: (companyId, bytes) => {
      charge(companyId, workMsOf(bytes));
    },
    waitMs(companyId) {
      const company = companies.get(companyId);
      if (company === undefined || factor === 0) return 0;
      return Math.max(0, company.waitsUntilMs - monotonicMs());
    },
    pauseMs(companyId, workMs) {
      const others = companies.size - (companies.has(companyId) ? 1 : 0);
      return others === 0 ? 0 : workMs * Math.min(MAX_PAUSE, Math.max(1, factor));
    },
    tick(busyPart) {
      factor = nextFactor(factor, busyPart);
      allWorkMs = age(companies, monotonicMs());
    },
  };
}

/** Forgets companies that are no longer present, and reduces the weight of earlier work. Returns the work of all. */
function age(companies: Map<string, Company>, nowMs: number): number {
  let allWorkMs = 0;
  for (const [companyId, company] of companies) {
    if (nowMs - company.seenAtMs >= PRESENT_MS && company.waitsUntilMs <= nowMs) {
      companies.delete(companyId);
      continue;
    }
    company.workMs *= KEPT_PER_TICK;
    allWorkMs += company.workMs;
  }
  return allWorkMs;
}

/**
 * An ordinary request waits for two or three ticks of the event loop. With a process that was busy for
 * half of the time, nine of ten took up to 2.2 times as long as with an idle one, and up to 1.6 times
 * when it was busy for a third; at nine tenths the median was 16 times as long.
 */
const BUSY = 0.4;
/** Waits become shorter while the process is busy for less than this part of the time. Between the two they stay. */
const CALM = 0.3;
const MAX_FACTOR = 16;
/** A factor below this becomes 0: waits of less than a twentieth of the work change nothing. */
const MIN_FACTOR = 0.05;

/**
 * Returns how long companies wait after their work, as a multiple of it, for the next tenth of a second.
 * It grows while the process is busy for more than two fifths of the time, and falls when it is calm.
 */
export function nextFactor(factor: number, busyPart: number): number {
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

/** Work of companies that are throttled. */
export interface ThrottledQueue<Item> {
  /** Adds an item behind those of its company, or before them. */
  add: (companyId: string, item: Item, place?: 'first' | 'last') => void;
  /** True while items of the company wait. */
  has: (companyId: string) => boolean;
  size: () => number;
  /** Releases all items, and releases added ones at once from now on. */
  end: () => void;
}

interface ThrottledQueueDeps<Item> {
  /** How long a company waits before its next item is released, in milliseconds. */
  waitMs: (companyId: string) => number;
  /** Called when the wait of a company is over. After false it waits again. */
  mayGo?: (companyId: string) => boolean;
  /** Calls the function once, after this many milliseconds. */
  after: (ms: number, run: () => void) => void;
  release: (item: Item) => void;
}

/**
 * Releases one item of each company at a time, in order, with a wait before each. A company with items has one timer, so
 * that an item costs the same however many companies wait.
 */
export function createThrottledQueue<Item>({
  waitMs,
  mayGo = () => true,
  after,
  release,
}: ThrottledQueueDeps<Item>): ThrottledQueue<Item> {
  const byCompany = new Map<string, Item[]>();
  let isEnded = false;

  function wait(companyId: string): void {
    after(Math.max(1, Math.ceil(waitMs(companyId))), () => {
      const items = byCompany.get(companyId);
      // It has ended.
      if (!items) return;
      if (mayGo(companyId)) releaseFirst(companyId, items);
      else wait(companyId);
    });
  }
  function releaseFirst(companyId: string, items: Item[]): void {
    const [first] = items.splice(0, 1);
    if (items.length > 0) wait(companyId);
    else byCompany.delete(companyId);
    if (first !== undefined) release(first);
  }

  return {
    add(companyId, item, place = 'last') {
      const items = byCompany.get(companyId);
      if (isEnded) release(item);
      else if (!items) {
        byCompany.set(companyId, [item]);
        wait(companyId);
      } else if (place === 'first') items.unshift(item);
      else items.push(item);
    },
    has: (companyId) => byCompany.has(companyId),
    size: () => byCompany.values().reduce((sum, items) => sum + items.length, 0),
    end() {
      isEnded = true;
      const all = [...byCompany.values()].flat();
      byCompany.clear();
      all.forEach(release);
    },
  };
}
