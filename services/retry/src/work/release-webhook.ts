import type { CancelReason } from '@posthorn/domain/delivery/delivery.ts';
import {
  CANCELLED_BY_CLIENT,
  expiryReasonAt,
  fateOfWaiting,
  isCancelledBefore,
  type WaitingFate,
} from '@posthorn/domain/delivery/when-cancelled.ts';
import { releasedRecord } from '@posthorn/domain/records/retry-due.ts';
import { untilAborted } from '@posthorn/platform/async/pause.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type {
  WaitingDelivery,
  WaitingOwner,
  WaitingDeliveries,
} from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import type { HoldNotes, HoldStates } from '@posthorn/platform/mongo/webhooks/holds.ts';
import type { OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { cancelWaiting, type CancelWaitingDeps } from './cancel-waiting.ts';
import type { PageBudget } from './page-budget.ts';

export interface ReleaseDeps extends CancelWaitingDeps {
  notes: Pick<HoldNotes, 'rateOf'>;
  waiting: Pick<WaitingDeliveries, 'page' | 'pageToCancel' | 'underWay' | 'endWait' | 'look'>;
  holds: Pick<HoldStates, 'holdersOf'>;
  circuits: Pick<OpenCircuits, 'read'>;
  records: Pick<RecordLog, 'publish'>;
  retryDueTopic: string;
  pageBudget: Pick<PageBudget, 'pageSize' | 'reserve'>;
  /** Counts released deliveries. */
  count: (deliveries: number) => void;
  logger: Pick<Logger, 'info'>;
  nowMs: () => number;
  /** The earlier one of the database's and of this process's time. */
  earlierMs: () => number;
  /** Rejects when the signal is aborted. */
  sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

export interface Release {
  webhook: WaitingOwner;
  /** Others wait for the place of this release. */
  isWanted: () => boolean;
  signal: AbortSignal;
}

/**
 * `nothing`: nothing waits. `done`: the same, after some were released. `on_hold`: a hold has begun, or another one still
 * lives. `quiet`: the endpoint fails or is paused. `yielded`: others go first.
 */
export type Released = 'nothing' | 'done' | 'on_hold' | 'quiet' | 'yielded';

/**
 * How many released deliveries of a webhook are under way at once: a new message waits behind them. The lower bounds are
 * for endpoints without a limit, which may take many at once: 16 before anything is known of them.
 */
const WINDOW = { start: 100, min: 50, max: 4_000 };
/** What an endpoint takes in this time is under way, so that it is never without work between two looks. */
const WINDOW_MS = 4_000;
/**
 * Between two looks at what is under way. The next one comes soon when most of the oldest had results. A look each 25 ms
 * read each delivery 15 times: MongoDB took seven times the CPU of a delivery that never waited.
 */
const POLL_MS = { min: 25, max: 500 };
const COUNTED_MS = 500;
/** So many of the oldest are looked up at once. */
const LOOKED_UP = 1_000;
const CANCELLED_AT_ONCE = 1_000;
/** Deliveries among which a release looks for what is under way: a window of them, and as many again that were attempted. */
const INHERITED = 4 * WINDOW.start;
/** A dispatcher may know for up to two seconds of a hold that has ended, and makes what it gets wait again. */
const HELD_AGAIN_MS = 250;
/** After this time without a result, a circuit that is open ends the release for now. */
const FAILING_AFTER_MS = 3_000;
/** The longest attempt takes 15 s. Whatever keeps the endpoint, such as a pause of an hour, ends the release for now. */
const QUIET_AFTER_MS = 20_000;
/** How long a release goes on while others wait for its place. */
const SLICE_MS = 3_000;
/** All webhooks of an app begin before MongoDB is busy with the pages of the first of them. */
const FIRST_PAGE = 10;
/** Parts of a second in which a rate lets through its share. */
const RATE_PARTS = 10;
/** So often a hold, a disabled webhook and another rate are noticed while nothing may be released. */
const FATE_MS = 2_000;

/**
 * Releases the waiting deliveries of one webhook, oldest first: publishes the attempts of a page, then ends the wait of
 * these. After a crash in between, the page is published again, and the dispatcher looks up what is recorded before it
 * makes such an attempt. So many are under way as the endpoint takes in four seconds: the others stay in order here
 * instead of circulating as deferrals. Throws when the signal is aborted, or a store or Kafka fails.
 */
export async function releaseWebhook(deps: ReleaseDeps, release: Release): Promise<Released> {
  const run = new ReleaseRun(deps, release);
  try {
    return await run.toEnd();
  } finally {
    run.free();
  }
}

class ReleaseRun {
  readonly #deps: ReleaseDeps;
  readonly #release: Release;
  readonly #sinceMs: number;
  #tokens: { left: number; atMs: number };
  /** Released, without a result as far as known; oldest first. */
  #open: WaitingDelivery[] = [];
  /** The ids of those that a release before this one has left under way. */
  readonly #inherited = new Set<string>();
  #window = WINDOW.start;
  /** What the limit of the webhook lets through in the time of a window. */
  #maxWindow = WINDOW.max;
  #fateReadAtMs = -Infinity;
  /** The rate that a client asked for; null for no limit but those of the endpoint. */
  #ratePerSecond: number | null = null;
  /** The oldest that may wait; '' for any. */
  #fromId = '';
  #hasFound = false;
  /** Its webhook is gone or disabled, as far as known. */
  #isToCancel = false;
  /** Its circuit is open, or not known yet: one is released at a time, and only when the next probe may be made. */
  #isProbing = true;
  /** One is released at a time until one has a result. */
  #mustProbe = false;
  #counted: { settled: number; sinceMs: number };
  #movedAtMs: number;
  #pollMs = POLL_MS.min;
  #notLookedMs = 0;
  #free: () => void = () => undefined;

  constructor(deps: ReleaseDeps, release: Release) {
    [this.#deps, this.#release] = [deps, release];
    const nowMs = deps.nowMs();
    this.#sinceMs = this.#movedAtMs = nowMs;
    this.#counted = { settled: 0, sinceMs: nowMs };
    // None: a release that begins anew would have one more each time.
    this.#tokens = { left: 0, atMs: nowMs };
  }

  free(): void {
    this.#free();
  }

  async toEnd(): Promise<Released> {
    const { nowMs, sleep } = this.#deps;
    const { signal, isWanted } = this.#release;
    if (!(await this.#readUnderWay())) return 'nothing';
    for (;;) {
      signal.throwIfAborted();
      if (!this.#isToCancel && (await this.#isCutOff())) return 'quiet';
      if (this.#isToCancel || this.#wanted() > 0 || this.#isFateOld()) {
        const ended = await this.#releasePage();
        if (ended) return ended;
      }
      await this.#passInherited();
      if (await this.#isQuiet()) return 'quiet';
      const isOver = Math.abs(nowMs() - this.#sinceMs) > SLICE_MS;
      if (isOver && isWanted()) return 'yielded';
      const ms = Math.min(this.#pollMs - this.#notLookedMs, this.#untilPartMs());
      await sleep(ms, signal);
      this.#notLookedMs += ms;
      if (this.#notLookedMs >= this.#pollMs) await this.#look();
    }
  }

  /** Begins with what a release before this one has left under way. Returns false when nothing waits. */
  async #readUnderWay(): Promise<boolean> {
    const { waiting } = this.#deps;
    const { webhook } = this.#release;
    await this.#fate();
    const [first] = await this.#page(1);
    if (!first) return false;
    this.#setOpen(await waiting.underWay(webhook, { beforeId: first.id, limit: INHERITED }));
    for (const { id } of this.#open) this.#inherited.add(id);
    return true;
  }

  /** What waits behind another delivery ends with its webhook in pages: its turns would come one after the other. */
  #page(limit: number): Promise<WaitingDelivery[]> {
    const { waiting } = this.#deps;
    const { webhook } = this.#release;
    return this.#isToCancel
      ? waiting.pageToCancel(webhook, this.#fromId, limit)
      : waiting.page(webhook, this.#fromId, limit);
  }

  /**
   * Of a release before this one some may get no result for hours although the endpoint works: they were deferred while its circuit
   * was open, or their records were lost. They keep nothing back once a single delivery has had a result.
   */
  async #passInherited(): Promise<void> {
    const isInherited = ({ id }: WaitingDelivery): boolean => this.#inherited.has(id);
    if (this.#open.length === 0 || !this.#open.every(isInherited)) return;
    const nowMs = this.#deps.nowMs();
    if (nowMs - this.#movedAtMs <= FAILING_AFTER_MS || (await this.#circuit()) === 'open') return;
    this.#inherited.clear();
    this.#setOpen([]);
    this.#mustProbe = this.#isProbing = true;
    this.#movedAtMs = nowMs;
  }

  #setOpen(open: WaitingDelivery[]): void {
    this.#open = open;
    this.#free();
    this.#free = this.#deps.pageBudget.reserve(open.length);
  }

  /** How many may be released now. */
  #wanted(): number {
    const window = this.#isProbing ? 1 : this.#window;
    if (this.#open.length > window / 2) return 0;
    const wanted = window - this.#open.length;
    if (this.#ratePerSecond === null) return wanted;
    const { atOnce, perMs } = sharesOf(this.#ratePerSecond);
    const { left, atMs } = this.#tokens;
    const nowMs = this.#deps.nowMs();
    this.#tokens = {
      left: Math.min(atOnce, left + Math.max(0, nowMs - atMs) * perMs),
      atMs: nowMs,
    };
    return Math.min(wanted, Math.floor(this.#tokens.left));
  }

  /** How long the rate lets nothing more through after a part of it. */
  #untilPartMs(): number {
    if (this.#ratePerSecond === null) return Infinity;
    const { atOnce, perMs } = sharesOf(this.#ratePerSecond);
    return Math.ceil(atOnce / perMs);
  }

  /** Returns how the release ends with this page; null when it goes on. */
  async #releasePage(): Promise<Released | null> {
    const { waiting, pageBudget, nowMs, earlierMs } = this.#deps;
    const { signal } = this.#release;
    const { fate, cancelBeforeMs } = await this.#fate();
    if (fate.kind === 'wait') return 'on_hold';
    const wanted = fate.kind === 'cancel' ? CANCELLED_AT_ONCE : this.#wanted();
    // The limit or the rate may be lower than it was a moment ago.
    if (wanted <= 0) return null;
    const size = pageBudget.pageSize(this.#hasFound ? wanted : Math.min(wanted, FIRST_PAGE));
    const page = await this.#page(size);
    const [oldest] = page;
    if (!oldest) {
      if (this.#fromId === '') return this.#hasFound ? 'done' : 'nothing';
      // Some may have begun to wait again before that.
      this.#fromId = '';
      return null;
    }
    this.#hasFound = true;
    this.#fromId = oldest.id;
    const atMs = earlierMs();
    const reasonOf = (each: WaitingDelivery): CancelReason | null => {
      if (fate.kind === 'cancel') return fate.reason;
      const isCancelled = isCancelledBefore(cancelBeforeMs, each.createdAtMs);
      return isCancelled ? CANCELLED_BY_CLIENT : expiryReasonAt(each, atMs);
    };
    for (const [reason, some] of Map.groupBy(page, reasonOf)) {
      if (reason !== null) await this.#cancel(some, reason);
      else {
        // Kafka may answer late: a stop must not wait for it, and whoever goes on publishes again.
        await untilAborted(this.#publish(some), signal);
        this.#opened(some);
      }
    }
    await waiting.endWait(page, nowMs());
    return null;
  }

  async #cancel(page: readonly WaitingDelivery[], reason: CancelReason): Promise<void> {
    const matched = await cancelWaiting(this.#deps, page, () => reason);
    const { companyId, webhookId } = this.#release.webhook;
    this.#deps.logger.info(
      { companyId, webhookId, reason, deliveries: matched },
      'cancelled deliveries that waited',
    );
  }

  #isFateOld(): boolean {
    return Math.abs(this.#deps.nowMs() - this.#fateReadAtMs) >= FATE_MS;
  }

  /** Read before each page: a hold may begin again, and the webhook may be disabled or get another limit or rate. */
  async #fate(): Promise<{ fate: WaitingFate; cancelBeforeMs: number | null }> {
    const { webhook } = this.#release;
    this.#fateReadAtMs = this.#deps.nowMs();
    const ratePerSecond = await this.#deps.notes.rateOf(webhook.webhookId);
    if (ratePerSecond !== this.#ratePerSecond) this.#tokens = { left: 0, atMs: this.#fateReadAtMs };
    this.#ratePerSecond = ratePerSecond;
    const holders = (await this.#deps.holds.holdersOf([webhook])).get(webhook.webhookId);
    const known = holders ?? { webhook: null, appHeld: null, isSuspended: false };
    const fate = fateOfWaiting(known, this.#deps.nowMs());
    this.#isToCancel = fate.kind === 'cancel';
    const perSecond = known.webhook?.rateLimitPerSecond ?? Infinity;
    this.#maxWindow = Math.min(WINDOW.max, (perSecond * WINDOW_MS) / 1_000);
    this.#window = Math.min(this.#window, this.#maxWindow);
    return { fate, cancelBeforeMs: known.webhook?.cancelBeforeMs ?? null };
  }

  #publish(page: readonly WaitingDelivery[]): Promise<void> {
    const { records, retryDueTopic, nowMs } = this.#deps;
    const dueAtMs = nowMs();
    return records.publish(
      page.map((each) => ({ topic: retryDueTopic, ...releasedRecord(each, dueAtMs) })),
    );
  }

  #opened(page: readonly WaitingDelivery[]): void {
    const { count, nowMs } = this.#deps;
    count(page.length);
    if (this.#ratePerSecond !== null) this.#tokens.left -= page.length;
    if (this.#open.length === 0) this.#movedAtMs = nowMs();
    this.#setOpen([...this.#open, ...page]);
  }

  /** Looks up the oldest that are under way, and fits the window to how many get a result in a second. */
  async #look(): Promise<void> {
    this.#notLookedMs = 0;
    const oldest = this.#open.slice(0, LOOKED_UP);
    if (oldest.length === 0) return;
    const { open, heldAgain } = await this.#deps.waiting.look(oldest);
    const settled = oldest.length - open.size - heldAgain.size;
    const done = new Set(oldest.flatMap(({ id }) => (open.has(id) ? [] : [id])));
    if (done.size > 0) this.#open = this.#open.filter(({ id }) => !done.has(id));
    const isBehind = settled * 2 >= oldest.length;
    this.#pollMs = isBehind ? POLL_MS.min : Math.min(POLL_MS.max, this.#pollMs * 2);
    this.#fitWindow(settled);
    if (heldAgain.size > 0) await this.#deps.sleep(HELD_AGAIN_MS, this.#release.signal);
  }

  /** Results come in batches, so that they are counted for half a second. */
  #fitWindow(settled: number): void {
    const nowMs = this.#deps.nowMs();
    if (settled > 0) {
      this.#movedAtMs = nowMs;
      this.#mustProbe = false;
    }
    this.#counted.settled += settled;
    const elapsedMs = nowMs - this.#counted.sinceMs;
    if (elapsedMs < COUNTED_MS) return;
    const fitting = Math.ceil((this.#counted.settled / elapsedMs) * WINDOW_MS);
    this.#counted = { settled: 0, sinceMs: nowMs };
    this.#window = Math.min(this.#maxWindow, Math.max(WINDOW.min, fitting));
  }

  async #isQuiet(): Promise<boolean> {
    if (this.#open.length === 0) return false;
    const quietMs = this.#deps.nowMs() - this.#movedAtMs;
    if (quietMs > QUIET_AFTER_MS) return true;
    return quietMs > FAILING_AFTER_MS && (await this.#circuit()) === 'open';
  }

  /**
   * Whether the endpoint takes nothing until its next probe. A circuit that opened before the hold has had no probe since,
   * so one delivery is released as such, and the others once that has closed the circuit.
   */
  async #isCutOff(): Promise<boolean> {
    if (!this.#isProbing) return false;
    const circuit = await this.#circuit();
    this.#isProbing = circuit !== 'closed' || this.#mustProbe;
    return circuit === 'open' && this.#open.length === 0;
  }

  /** Without Redis every endpoint counts as working. */
  async #circuit(): Promise<'closed' | 'half_open' | 'open'> {
    const { companyId, webhookId } = this.#release.webhook;
    const probeAtMs = await this.#deps.circuits.read(companyId, webhookId).catch(() => null);
    if (probeAtMs === null) return 'closed';
    return probeAtMs > this.#deps.nowMs() ? 'open' : 'half_open';
  }
}

/**
 * Returns how many deliveries a rate lets through at once, and per millisecond: in no second, wherever it begins, are there
 * more than the rate (docs/contract.md C24.3).
 */
function sharesOf(ratePerSecond: number): { atOnce: number; perMs: number } {
  const atOnce = Math.max(1, Math.floor(ratePerSecond / RATE_PARTS));
  return { atOnce, perMs: (ratePerSecond + 1 - atOnce) / 1_000 };
}
