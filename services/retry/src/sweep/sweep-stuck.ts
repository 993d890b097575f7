import { endedAtMs, refOf } from '@posthorn/domain/delivery/delivery.ts';
import { type SettledDelivery, unattemptedDelivery } from '@posthorn/domain/delivery/settlement.ts';
import {
  type Remedy,
  remedyFor,
  type StuckCause,
  type StuckDelivery,
} from '@posthorn/domain/delivery/stuck-delivery.ts';
import { deliveryIdOf, timeMsOf } from '@posthorn/domain/ids.ts';
import { forAttempts } from '@posthorn/domain/message.ts';
import { encodeDeliveryFailed, logFieldsOfMany } from '@posthorn/domain/records/records.ts';
import { sweptRecord } from '@posthorn/domain/records/retry-due.ts';
import type { Loop } from '@posthorn/platform/async/loop.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { StuckDeliveries } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import type {
  CheckedPage,
  MessageChecks,
} from '@posthorn/platform/mongo/messages/message-checks.ts';
import type { WebhookState, WebhookStates } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import {
  createLeasedLoop,
  type KeepLease,
  type LeaseHolder,
} from '@posthorn/platform/work/leased-loop.ts';
import type { StuckMetrics } from '../metrics.ts';

interface SweepStuckDeps extends LeaseHolder {
  /** How long a delivery must be overdue, in milliseconds, to count as stuck. */
  afterMs: number;
  topics: RemedyTopics;
  checks: MessageChecks;
  stuck: StuckDeliveries;
  deliveries: Pick<DeliveryStore, 'insertAll'>;
  webhooks: Pick<WebhookStates, 'statesOf'>;
  records: Pick<RecordLog, 'publish'>;
  metrics: StuckMetrics;
  monotonicMs: () => number;
  /** Waits so many milliseconds, or until the signal is aborted. Never rejects. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  logger: Logger;
}

const EVERY_MS = 300_000;
/** Large, because each page costs a write of the position. */
const CHECK_PAGE = { maxMessages: 5_000, maxTargets: 5_000 };
/** With the pause between two pages at most 1,000 deliveries a second: less than one dispatcher can make. */
const DELIVERIES_PER_PAGE = 200;
const MOVE_PAUSE_MS = 200;
/** Neither the checks nor the remedies delay the other for longer, however much there is to do. */
const STEP_MS = 60_000;
/** Two sweeps. A position that is later than this is caught up with as fast as MongoDB replies. */
const BEHIND_MS = 600_000;
/**
 * Gateways stamp the creation time by their own clocks, and the database removes by its own: close to the end of the
 * retention a delivery may be missing because it has expired.
 */
const EXPIRY_MARGIN_MS = 3_600_000;
/** Records that wait for their endpoint are not lost, and each copy would use a reservation. */
const BACKLOGGED_AFTER_MS = 7 * 86_400_000;

/**
 * Finds deliveries that no record in Kafka moves on, and publishes such a record: for messages whose deliveries
 * were never recorded, retries that are long overdue, and schedules that were never ended. It publishes first and marks the
 * deliveries as swept afterwards, so that a crash repeats a step and never skips one. A tick ends when there is nothing
 * left to do, apart from what other processes do: each share of the messages, and the remedies, are done by one process at
 * a time, whichever comes first.
 */
export function createStuckSweep(deps: SweepStuckDeps): Loop {
  const { logger, metrics, afterMs } = deps;
  return createLeasedLoop({
    ...deps,
    name: 'sweep of stuck deliveries',
    // The remedies have this lease, and each share of the checks has one of its own.
    lease: 'reconciler',
    everyMs: Math.min(EVERY_MS, afterMs / 4),
    startsAtOnce: true,
    // Sweeps are minutes apart, and any process may do the next one.
    async run(keep, signal) {
      const sweep = new Sweep(deps, keep, signal);
      for (let isDone = false; !isDone;) {
        isDone = await sweep.runOnce();
        if (signal.aborted) return;
      }
      metrics.onCompleted();
      logger.info(sweep.totals, 'sweep of stuck deliveries completed');
    },
  });
}

/** The counts of one sweep so far: `checked` counts messages, the others deliveries. */
type Totals = Partial<Record<StuckCause | 'checked', number>>;

class Sweep {
  readonly totals: Totals = {};
  readonly #deps: SweepStuckDeps;
  readonly #keepLease: KeepLease;
  readonly #signal: AbortSignal;
  /** The database's time when the run began. */
  #nowMs = 0;
  /** By share, as last seen. */
  #checkedToMs: (number | null)[] = [];

  constructor(deps: SweepStuckDeps, keepLease: KeepLease, signal: AbortSignal) {
    this.#deps = deps;
    this.#keepLease = keepLease;
    this.#signal = signal;
  }

  /** Returns true when there is nothing left to do. */
  async runOnce(): Promise<boolean> {
    const { nowMs, checkedToMs } = await this.#deps.checks.positions();
    this.#nowMs = nowMs;
    this.#checkedToMs = checkedToMs;
    this.#showPosition();
    const isChecked = await this.#checkAll();
    const isMoved = await this.#moveAll();
    return isChecked && isMoved;
  }

  /** The share that is furthest behind counts: what is before it is checked. */
  #showPosition(): void {
    const known = this.#checkedToMs.filter((ms) => ms !== null);
    const isKnown = known.length > 0 && known.length === this.#checkedToMs.length;
    this.#deps.metrics.onChecked(isKnown ? Math.min(...known) : null);
  }

  get #beforeMs(): number {
    return this.#nowMs - this.#deps.afterMs;
  }

  /**
   * Checks messages until all are checked that are old enough, those of the share that is furthest behind first. Returns
   * false when it stopped before. A share that another process has is left to that one.
   */
  async #checkAll(): Promise<boolean> {
    const endsAtMs = this.#deps.monotonicMs() + STEP_MS;
    const atMs = (share: number): number => this.#checkedToMs[share] ?? 0;
    const shares = [...this.#checkedToMs.keys()].sort((a, b) => atMs(a) - atMs(b));
    for (const share of shares) {
      if (!(await this.#keepLease(share))) continue;
      if (!(await this.#checkShare(share, endsAtMs))) return false;
    }
    return true;
  }

  async #checkShare(share: number, endsAtMs: number): Promise<boolean> {
    const { checks, monotonicMs, pause } = this.#deps;
    const beforeMs = this.#beforeMs;
    const afterId = await checks.checkedTo(share);
    let beganAtMs = monotonicMs();
    for await (const page of checks.pagesOf({ ...CHECK_PAGE, share, afterId, beforeMs })) {
      await this.#recordMissing(share, page);
      const checkedToMs = timeMsOf(page.readTo);
      this.#checkedToMs[share] = checkedToMs;
      this.#showPosition();
      const tookMs = monotonicMs() - beganAtMs;
      const isBehind = beforeMs - checkedToMs > BEHIND_MS;
      // While it keeps up, the sweep works half of the time, so that it disturbs nothing else.
      await pause(isBehind ? 0 : tookMs, this.#signal);
      beganAtMs = monotonicMs();
      if (beganAtMs >= endsAtMs || !(await this.#keepLease(share))) return false;
    }
    await checks.markComplete(share, beforeMs);
    this.#checkedToMs[share] = beforeMs;
    this.#showPosition();
    return true;
  }

  /**
   * Inserts the deliveries of these messages that are to be attempted and not recorded, then stores that the messages are checked. From then
   * on a lost first attempt is found as an overdue one, so that each message has to be checked only once.
   */
  async #recordMissing(share: number, { messages, readTo }: CheckedPage): Promise<void> {
    const { checks } = this.#deps;
    const expected = messages
      .map(forAttempts)
      .flatMap((message) =>
        message.targets.map((to) => ({ id: deliveryIdOf(message.id, to), message, to })),
      );
    const recorded = await checks.recordedAmong(expected.map(({ id }) => id));
    const missing = expected
      .filter(({ id }) => !recorded.has(id))
      .map(({ message, to }) => unattemptedDelivery(message, to, this.#nowMs));
    if (missing.length > 0) await this.#insertLost(missing);
    this.#count('checked', messages.length);
    await checks.markChecked(share, readTo);
  }

  async #insertLost(missing: readonly SettledDelivery[]): Promise<void> {
    const { checks, deliveries, logger } = this.#deps;
    // Read after the look-up, so that a retention that was shortened before it is known here.
    const keptFromMs = this.#nowMs - (await checks.retentionMs()) + EXPIRY_MARGIN_MS;
    // Deliveries go by themselves at the end of their own, and their message may be there a while longer.
    const isKept = ({ removeAtMs = Infinity }: SettledDelivery): boolean =>
      removeAtMs > this.#nowMs + EXPIRY_MARGIN_MS;
    const lost = missing.filter((each) => each.createdAtMs > keptFromMs && isKept(each));
    if (lost.length === 0) return;
    await deliveries.insertAll(lost);
    // They are counted when they are moved on.
    const ids = logFieldsOfMany(lost.map((delivery) => ({ ...delivery, deliveryId: delivery.id })));
    logger.warn({ deliveries: lost.length, ...ids }, 'recorded missing deliveries of messages');
  }

  /** Moves on what is stuck, unless another process does. Returns false when it stopped before the end. */
  async #moveAll(): Promise<boolean> {
    const { stuck } = this.#deps;
    if (!(await this.#keepLease())) return true;
    const noneOverdue = await this.#moveFound(stuck.findOverdue);
    const noneUnended = await this.#moveFound(stuck.findUnended);
    return noneOverdue && noneUnended;
  }

  /** Moves on what `find` returns, until it returns no full page. Returns false when it stopped before. */
  async #moveFound(find: StuckDeliveries['findOverdue']): Promise<boolean> {
    const { monotonicMs, pause } = this.#deps;
    const endsAtMs = monotonicMs() + STEP_MS;
    while (await this.#keepLease()) {
      const page = await find(this.#beforeMs, DELIVERIES_PER_PAGE);
      if (page.length > 0) await this.#moveOn(page);
      if (page.length < DELIVERIES_PER_PAGE) return true;
      if (monotonicMs() >= endsAtMs) return false;
      await pause(MOVE_PAUSE_MS, this.#signal);
    }
    return false;
  }

  /** Publishes what moves these deliveries on, then marks them as swept. */
  async #moveOn(page: readonly StuckDelivery[]): Promise<void> {
    const { topics, records, stuck, webhooks, logger, metrics } = this.#deps;
    const nowMs = this.#nowMs;
    const states = await webhooks.statesOf([...new Set(page.map(({ webhookId }) => webhookId))]);
    const moved = page
      .filter(
        ({ webhookId, createdAtMs }) =>
          !this.#hasBacklog(states.get(webhookId)) || nowMs - createdAtMs > BACKLOGGED_AFTER_MS,
      )
      .map((delivery) => ({ delivery, remedy: remedyFor(delivery) }));
    if (moved.length > 0) {
      await records.publish(
        moved.map(({ delivery, remedy }) => remedyRecord(topics, delivery, remedy, nowMs)),
      );
    }
    // The whole page: those that stay where they are would be found first again and again.
    await stuck.markSwept(page, nowMs);
    if (moved.length === 0) return;
    const causes = Map.groupBy(moved, ({ remedy }) => remedy.cause);
    for (const [cause, { length }] of causes) {
      metrics.moved.inc({ found: cause }, length);
      this.#count(cause, length);
    }
    const counts = Object.fromEntries([...causes].map(([cause, { length }]) => [cause, length]));
    const ids = logFieldsOfMany(
      moved.map(({ delivery }) => ({ ...delivery, deliveryId: delivery.id })),
    );
    logger.warn({ ...counts, ...ids }, 'moved stuck deliveries on');
  }

  /** True for a webhook that has a rate limit, or that the release of deferred attempts has marked lately. */
  #hasBacklog(webhook: WebhookState | undefined): boolean {
    if (!webhook) return false;
    const { hasRateLimit, deferredAtMs } = webhook;
    return hasRateLimit || (deferredAtMs !== null && deferredAtMs > this.#beforeMs);
  }

  #count(what: keyof Totals, count: number): void {
    this.totals[what] = (this.totals[what] ?? 0) + count;
  }
}

interface RemedyTopics {
  retryDue: string;
  deliveryFailed: string;
}

/** The record that moves a stuck delivery on. */
export function remedyRecord(
  { retryDue, deliveryFailed }: RemedyTopics,
  delivery: StuckDelivery,
  remedy: Remedy,
  nowMs: number,
): OutgoingRecord {
  const ref = refOf(delivery);
  switch (remedy.kind) {
    case 'attempt':
      return { topic: retryDue, ...sweptRecord(delivery, remedy, nowMs) };
    case 'failure': {
      const { attempt } = remedy;
      const { number: attemptNumber, outcome, statusCode, ending } = attempt;
      const ended = { attemptNumber, endedAtMs: endedAtMs(attempt), outcome, statusCode, ending };
      return {
        topic: deliveryFailed,
        key: delivery.webhookId,
        value: encodeDeliveryFailed({ ...ref, ...ended }),
      };
    }
  }
}
