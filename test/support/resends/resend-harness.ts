import { setImmediate as untilSettled } from 'node:timers/promises';
import { decodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { ResentTo } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { ClaimedWork } from '@posthorn/platform/work/claimed-work.ts';
import { createPageBudget } from '../../../services/retry/src/work/page-budget.ts';
import { createResends, type ResendsDeps } from '../../../services/retry/src/work/resend.ts';
import { createMemoryReplays, type MemoryReplays } from '../memory/memory-replays.ts';
import { createMemoryResends, type MemoryResends } from '../memory/memory-resends.ts';
import { createVirtualTimers, type VirtualTimers } from '../time/virtual-timers.ts';

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;

/** Retry services that send resends, on stores in memory and in virtual time. */
export interface ResendHarness extends MemoryResends, MemoryReplays {
  /** To which replays send; null after its deletion. */
  replayedTo: ResentTo | null;
  /** The ids of the resends that somebody works on. */
  claimed: () => string[];
  timers: VirtualTimers;
  records: { publish: (records: readonly OutgoingRecord[]) => Promise<void> };
  /** Ids of the deliveries in each send, in order. */
  sends: string[][];
  /** Called for every delivery that is published. It is delivered at once unless a test replaces this. */
  dispatch: (deliveryId: string) => void;
  /** Returns how the worker finds a webhook with this rate limit, or all of them. */
  limitedTo: (perSecond: number, only?: string) => ResendsDeps['targetOf'];
  openCircuits: Set<string>;
  held: Set<string>;
  worker: (overrides?: Partial<ResendsDeps>) => ClaimedWork;
  /** Adds exhausted deliveries, and the webhook of an app; returns their ids. */
  fail: (count: number, webhookId?: string, companyId?: string) => string[];
  /** Moves on; each worker claims what is due every second. */
  run: (ms: number, ...workers: ClaimedWork[]) => Promise<void>;
  /** Moves on until no resend runs, for a day at most. */
  runToEnd: (...workers: ClaimedWork[]) => Promise<void>;
}

export function createResendHarness(): ResendHarness {
  const memory = createMemoryResends();
  const timers = createVirtualTimers();
  const harness: ResendHarness = {
    ...memory,
    ...createMemoryReplays(),
    replayedTo: {
      appId: 'app_1',
      disabled: false,
      eventTypes: [],
      cancelBeforeMs: null,
      rateLimitPerSecond: null,
    },
    claimed: () =>
      [...memory.running.values()].flatMap(({ id, status, claim }) =>
        status === 'running' && typeof claim === 'string' ? id : [],
      ),
    timers,
    sends: [],
    dispatch: (id) => {
      memory.settle(id, true);
    },
    limitedTo: (perSecond, only) => (_companyId, webhookId) => {
      const isLimited = only === undefined || webhookId === only;
      const rateLimitPerSecond = isLimited ? perSecond : null;
      return Promise.resolve(harness.replayedTo && { ...harness.replayedTo, rateLimitPerSecond });
    },
    openCircuits: new Set(),
    held: new Set(),
    records: {
      publish(records) {
        const ids = records.map(({ value }) => idOf(value));
        harness.sends.push(ids);
        for (const id of ids) harness.dispatch(id);
        return Promise.resolve();
      },
    },
    worker: (overrides = {}) => createResends({ ...depsOf(harness), ...overrides }),
    fail(count, webhookId = 'wh_1', companyId = 'comp_a') {
      memory.webhooks.add(webhookId);
      const suffix = webhookId === 'wh_1' ? '' : `_${webhookId}`;
      const ids = Array.from(
        { length: count },
        (_, n) => `dlv_${String(n).padStart(5, '0')}${suffix}`,
      );
      for (const id of ids) memory.add(id, 'exhausted', 7, webhookId).companyId = companyId;
      return ids;
    },
    async run(ms, ...workers) {
      const endMs = timers.nowMs() + ms;
      do {
        for (const each of workers) void each.tick();
        await untilSettled();
        const untilMs = Math.min(timers.nowMs() + SECOND_MS, endMs);
        await timers.runUntil(untilMs, untilSettled);
      } while (timers.nowMs() < endMs);
    },
    async runToEnd(...workers) {
      const endMs = timers.nowMs() + 24 * HOUR_MS;
      const isRunning = (): boolean =>
        [...memory.running.values()].some(({ status }) => status === 'running');
      do await harness.run(SECOND_MS, ...workers);
      while (isRunning() && timers.nowMs() < endMs);
    },
  };
  return harness;
}

let claims = 0;

function depsOf(harness: ResendHarness): ResendsDeps {
  const { resends, marks, timers } = harness;
  return {
    newClaim: () => `claim-${(claims += 1)}`,
    resends,
    marks,
    replays: harness.replays,
    targetOf: () => Promise.resolve(harness.replayedTo),
    records: harness.records,
    retryDueTopic: 'due',
    announceTimed: () => undefined,
    circuits: {
      read: (_companyId, id) => Promise.resolve(harness.openCircuits.has(id) ? 1 : null),
    },
    isOnHold: ({ webhookId }) => Promise.resolve(harness.held.has(webhookId)),
    pageBudget: createPageBudget(16_777_216),
    nowMs: timers.nowMs,
    sleep: (ms, signal) => sleep(timers, ms, signal),
    logger: createLogger('test', 'silent'),
  };
}

function sleep(timers: VirtualTimers, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      cancel();
      reject(signal.reason as Error);
    };
    const cancel = timers.after(ms, () => {
      signal.removeEventListener('abort', abort);
      resolve();
    });
    signal.addEventListener('abort', abort, { once: true });
  });
}

function idOf(value: OutgoingRecord['value']): string {
  return decodeRetryDue(value).messageId.slice('msg_'.length);
}
