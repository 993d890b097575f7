import { type SettledDelivery, unattemptedDelivery } from '@posthorn/domain/delivery/settlement.ts';
import {
  type Remedy,
  remedyFor,
  type StuckCause,
  type StuckDelivery,
} from '@posthorn/domain/delivery/stuck-delivery.ts';
import { deliveryIdOf, timeMsOf } from '@posthorn/domain/ids.ts';
import { endedAtMs, refOf } from '@posthorn/domain/delivery/delivery.ts';
import {
  encodeDeliveryFailed,
  encodeRetryDue,
  logFieldsOfMany,
} from '@posthorn/domain/records/records.ts';
import { TURN_AT_HEADER } from '@posthorn/domain/records/record-headers.ts';
import { createLoop, type Loop, stopSoon } from '@posthorn/platform/async/loop.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { CompanyLife } from '@posthorn/platform/mongo/companies/companies.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { StuckDeliveries } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import { ifLeaseIsFree, type LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type {
  CheckedMessage,
  MessageChecks,
} from '@posthorn/platform/mongo/messages/message-checks.ts';
import type { WebhookState, WebhookStates } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { StuckMetrics } from './sweep-metrics.ts';

interface SweepStuckDeps extends PageDeps {
  /** Names this process as the holder of the lease. */
  holder: string;
  /** How long a delivery must be overdue, in milliseconds, to count as stuck. */
  afterMs: number;
  leases: LeaseStore;
  monotonicMs: () => number;
  /** Waits so many milliseconds, or until the signal is aborted. Never rejects. */
  rest: (ms: number, signal: AbortSignal) => Promise<void>;
}

const LEASE = 'reconciler';
const EVERY_MS = 300_000;
/** Large, because each page costs a write of the position and one of the lease. */
const CHECK_PAGE = { maxMessages: 5_000, maxTargets: 5_000 };
/** With the rest between two pages at most 1,000 deliveries a second: less than one dispatcher can make. */
const DELIVERIES_PER_PAGE = 200;
const MOVE_REST_MS = 200;
/** Neither the checks nor the remedies keep the other waiting for longer, however much there is to do. */
const STEP_MS = 60_000;

interface Work extends SweepStuckDeps {
  signal: AbortSignal;
  /** Returns false when another process has the lease, or when this one stops. */
  keepLease: () => Promise<boolean>;
}

/**
 * Finds deliveries that no record in Kafka moves on any more, and publishes such a record: for messages
 * whose deliveries were never recorded, retries that are long overdue, and schedules that nobody ended.
 * It publishes first and marks the deliveries as swept afterwards, so that a crash repeats a step and
 * never skips one. A tick ends when there is nothing left to do; it does nothing while another process
 * holds the lease.
 */
export function createStuckSweep(deps: SweepStuckDeps): Loop {
  const loop = createLoop({
    name: 'sweep of stuck deliveries',
    everyMs: Math.min(EVERY_MS, deps.afterMs / 4),
    run: (signal) => sweepUnderLease(deps, signal),
    logger: deps.logger,
  });
  return {
    start() {
      loop.start();
      void loop.tick();
    },
    tick: loop.tick,
    stop: () => stopSoon(loop),
  };
}

/** Sweeps are minutes apart, and any process may do the next one. */
async function sweepUnderLease(deps: SweepStuckDeps, signal: AbortSignal): Promise<void> {
  const { leases, holder, checks, logger, metrics } = deps;
  metrics.onChecked(await checks.checkedToMs());
  await ifLeaseIsFree(leases, { name: LEASE, holder }, async (renew) => {
    const totals: Totals = {};
    const keepLease = async (): Promise<boolean> => !signal.aborted && renew();
    const work: Work = { ...deps, signal, keepLease };
    while (!(await sweepOnce(work, totals))) if (!(await keepLease())) return;
    metrics.onCompleted();
    logger.info(totals, 'sweep of stuck deliveries completed');
  });
}

/** Returns true when it has done everything that there was to do. */
async function sweepOnce(work: Work, totals: Totals): Promise<boolean> {
  const { checks, stuck, afterMs } = work;
  const { nowMs, checkedTo } = await checks.begin();
  const state: SweepState = { nowMs, afterMs, totals };
  const isChecked = await checkAll(work, checkedTo, state);
  const isMoved = await moveAll(work, stuck.findOverdue, state);
  const isEnded = await moveAll(work, stuck.findUnended, state);
  return isChecked && isMoved && isEnded;
}

/** Checks messages until all are checked that are old enough. Returns false when it stopped before. */
async function checkAll(work: Work, afterId: string, state: SweepState): Promise<boolean> {
  const { checks, metrics, monotonicMs, rest, signal } = work;
  const beforeMs = state.nowMs - state.afterMs;
  const endsAtMs = monotonicMs() + STEP_MS;
  let beganAtMs = monotonicMs();
  for await (const page of checks.pagesOf({ ...CHECK_PAGE, afterId, beforeMs })) {
    await recordMissing(work, page, state);
    const checkedToMs = timeMsOf(page.at(-1)?.id ?? afterId);
    metrics.onChecked(checkedToMs);
    const tookMs = monotonicMs() - beganAtMs;
    await rest(restMs({ tookMs, behindMs: beforeMs - checkedToMs }), signal);
    beganAtMs = monotonicMs();
    if (beganAtMs >= endsAtMs || !(await work.keepLease())) return false;
  }
  await checks.markComplete(beforeMs);
  metrics.onChecked(beforeMs);
  return true;
}

/** Moves on what `find` returns, until it returns no full page. Returns false when it stopped before. */
async function moveAll(
  work: Work,
  find: StuckDeliveries['findOverdue'],
  state: SweepState,
): Promise<boolean> {
  const { monotonicMs, rest, signal } = work;
  const endsAtMs = monotonicMs() + STEP_MS;
  while (await work.keepLease()) {
    const page = await find(state.nowMs - state.afterMs, DELIVERIES_PER_PAGE);
    await moveOn(work, page, state);
    if (page.length < DELIVERIES_PER_PAGE) return true;
    if (monotonicMs() >= endsAtMs) return false;
    await rest(MOVE_REST_MS, signal);
  }
  return false;
}

interface PageDeps {
  topics: RemedyTopics;
  checks: MessageChecks;
  stuck: StuckDeliveries;
  deliveries: Pick<DeliveryStore, 'insertAll'>;
  webhooks: Pick<WebhookStates, 'statesOf'>;
  companies: Pick<CompanyLife, 'listSuspended'>;
  records: Pick<RecordLog, 'publish'>;
  metrics: StuckMetrics;
  logger: Logger;
}

/** What one sweep has done so far: `checked` counts messages, the others deliveries. */
type Totals = Partial<Record<StuckCause | 'checked', number>>;

/** `nowMs` is the database's time when the round began. */
interface SweepState extends SweepTime {
  totals: Totals;
}

/**
 * Inserts the deliveries of these messages that are not recorded, then stores that the messages are
 * checked. From then on a lost first attempt is found as an overdue one, so that each message has to
 * be checked only once.
 */
async function recordMissing(
  deps: PageDeps,
  page: readonly CheckedMessage[],
  { nowMs, totals }: SweepState,
): Promise<void> {
  const last = page.at(-1);
  if (!last) return;
  const expected = expectedDeliveries(page);
  const recorded = await deps.checks.recordedAmong(expected.map(({ id }) => id));
  const missing = expected
    .filter(({ id }) => !recorded.has(id))
    .map(({ message, webhookId }) => unattemptedDelivery(message, webhookId, nowMs));
  if (missing.length > 0) await insertLost(deps, missing, nowMs);
  add(totals, 'checked', page.length);
  await deps.checks.markChecked(last.id);
}

async function insertLost(
  { checks, deliveries, logger, metrics }: PageDeps,
  missing: readonly SettledDelivery[],
  nowMs: number,
): Promise<void> {
  // Read after the look-up, so that a retention that was shortened before it is known here.
  const retentionMs = await checks.retentionMs();
  const lost = missing.filter((delivery) => isLost(delivery, nowMs, retentionMs));
  if (lost.length === 0) return;
  await deliveries.insertAll(lost);
  // The pending ones are counted when they are moved on.
  const cancelled = lost.filter(({ status }) => status === 'cancelled').length;
  metrics.moved.inc({ found: 'lost_message' }, cancelled);
  const ids = logFieldsOfMany(lost.map((delivery) => ({ ...delivery, deliveryId: delivery.id })));
  logger.warn({ deliveries: lost.length, ...ids }, 'recorded missing deliveries of messages');
}

/** Publishes what moves these deliveries on, then marks them as swept. */
async function moveOn(
  { topics, records, stuck, webhooks, companies, logger, metrics }: PageDeps,
  page: readonly StuckDelivery[],
  { totals, ...time }: SweepState,
): Promise<void> {
  if (page.length === 0) return;
  const { nowMs } = time;
  const backlogged = await backloggedAmong(webhooks, page, time);
  const suspended = await companies.listSuspended();
  const moved = page
    // Their records wait in deferrals: each sweep would add a copy that circulates beside them.
    .filter(({ companyId }) => !suspended.has(companyId))
    .filter((delivery) => isToBeMoved(delivery, backlogged.has(delivery.webhookId), nowMs))
    .map((delivery) => ({ delivery, remedy: remedyFor(delivery) }));
  if (moved.length > 0) {
    await records.publish(
      moved.map(({ delivery, remedy }) => remedyRecord(topics, delivery, remedy, nowMs)),
    );
  }
  // All of the page, or those that are left out would be found first again and again.
  await stuck.markSwept(page, nowMs);
  if (moved.length === 0) return;
  const counts: Totals = {};
  for (const { cause } of moved.map(({ remedy }) => remedy)) {
    metrics.moved.inc({ found: cause });
    add(counts, cause, 1);
    add(totals, cause, 1);
  }
  const ids = logFieldsOfMany(
    moved.map(({ delivery }) => ({ ...delivery, deliveryId: delivery.id })),
  );
  logger.warn({ ...counts, ...ids }, 'moved stuck deliveries on');
}

async function backloggedAmong(
  webhooks: PageDeps['webhooks'],
  page: readonly StuckDelivery[],
  time: SweepTime,
): Promise<Set<string>> {
  const states = await webhooks.statesOf([...new Set(page.map(({ webhookId }) => webhookId))]);
  return new Set([...states].filter(([, state]) => hasBacklog(state, time)).map(([id]) => id));
}

function add(totals: Totals, what: keyof Totals, count: number): void {
  totals[what] = (totals[what] ?? 0) + count;
}

interface RemedyTopics {
  retryDue: string;
  deliveryFailed: string;
}

/**
 * Gateways stamp the creation time by their own clocks, and the database removes by its own: close to
 * the end of the retention a delivery may be missing because it has expired.
 */
const EXPIRY_MARGIN_MS = 3_600_000;
/** Records that wait for their endpoint are not lost, and each copy would use a turn. */
const BACKLOGGED_AFTER_MS = 7 * 86_400_000;

/** A delivery that a message should have. */
interface ExpectedDelivery {
  id: string;
  message: CheckedMessage;
  webhookId: string;
}

/** The deliveries that these messages should have. */
export function expectedDeliveries(messages: readonly CheckedMessage[]): ExpectedDelivery[] {
  return messages.flatMap((message) =>
    message.targets.map((webhookId) => ({
      id: deliveryIdOf(message.id, webhookId),
      message,
      webhookId,
    })),
  );
}

/** Whether a delivery that is not stored was lost, and has not expired. Times in milliseconds since 1970. */
export function isLost(
  { createdAtMs }: Pick<SettledDelivery, 'createdAtMs'>,
  nowMs: number,
  retentionMs: number,
): boolean {
  return createdAtMs > nowMs - retentionMs + EXPIRY_MARGIN_MS;
}

interface SweepTime {
  /** Milliseconds since 1970. */
  nowMs: number;
  /** How long a delivery must be overdue, in milliseconds, to count as stuck. */
  afterMs: number;
}

/** Returns true for a webhook with a backlog: it has a rate limit, or was marked (mark-backlogs.ts) lately. */
export function hasBacklog(
  { hasRateLimit, deferredAtMs }: Pick<WebhookState, 'hasRateLimit' | 'deferredAtMs'>,
  { nowMs, afterMs }: SweepTime,
): boolean {
  return hasRateLimit || (deferredAtMs !== null && nowMs - deferredAtMs < afterMs);
}

/** Whether a stuck delivery is to be moved on now. `isBacklogged`: its webhook has a backlog. */
export function isToBeMoved(
  { createdAtMs }: Pick<StuckDelivery, 'createdAtMs'>,
  isBacklogged: boolean,
  nowMs: number,
): boolean {
  return !isBacklogged || nowMs - createdAtMs > BACKLOGGED_AFTER_MS;
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
    case 'attempt': {
      const { attemptNumber, dueAtMs } = remedy;
      return {
        topic: retryDue,
        key: delivery.webhookId,
        // With the trigger of a retry even when it is the first: new messages go before lost ones.
        value: encodeRetryDue({ ...ref, attemptNumber, dueAtMs }),
        headers: { [TURN_AT_HEADER]: String(nowMs) },
      };
    }
    case 'failure': {
      const { attempt } = remedy;
      const { number: attemptNumber, outcome, statusCode } = attempt;
      const ended = { attemptNumber, endedAtMs: endedAtMs(attempt), outcome, statusCode };
      return {
        topic: deliveryFailed,
        key: delivery.webhookId,
        value: encodeDeliveryFailed({ ...ref, ...ended }),
      };
    }
  }
}

/** Two sweeps. A position that is later than this is caught up with as fast as MongoDB answers. */
export const BEHIND_MS = 600_000;

/** While it keeps up, the sweep works half of the time, so that it disturbs nothing else. */
const RESTS_PER_PAGE = 1;

/**
 * Returns how long to rest, in milliseconds, after a page that took `tookMs`. `behindMs` is how far the
 * position is from where the sweep ends.
 */
export function restMs({ tookMs, behindMs }: { tookMs: number; behindMs: number }): number {
  return behindMs > BEHIND_MS ? 0 : tookMs * RESTS_PER_PAGE;
}
