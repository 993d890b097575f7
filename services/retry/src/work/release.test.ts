import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { setImmediate as untilSettled } from 'node:timers/promises';
import type { Hold } from '@posthorn/domain/waiting.ts';
import { decodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { WaitingDelivery } from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import type { HoldPlace } from '@posthorn/platform/mongo/webhooks/holds.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import {
  createMemoryHoldNotes,
  type MemoryHoldNotes,
} from '../../../../test/support/memory/memory-hold-notes.ts';
import { asyncNotes } from '../../../../test/support/memory/memory-notes.ts';
import {
  createMemoryWaiting,
  type MemoryWaiting,
} from '../../../../test/support/memory/memory-waiting.ts';
import {
  createVirtualTimers,
  type VirtualTimers,
} from '../../../../test/support/time/virtual-timers.ts';
import type { ClaimedWork } from '@posthorn/platform/work/claimed-work.ts';
import { createPageBudget } from './page-budget.ts';
import { createReleases, type ReleaseNotesDeps } from './release.ts';

const [STEP_MS, SECOND_MS, MINUTE_MS, HOUR_MS] = [20, 1_000, 60_000, 3_600_000];
const HOLD: Hold = { sinceMs: 0, untilMs: null, reason: null, by: 'key_1' };
const FREE = { disabled: false, cancelBeforeMs: null, rateLimitPerSecond: null, held: null };

let timers: VirtualTimers;
let memory: MemoryWaiting;
let deliveries: MemoryWaiting['deliveries'];
let notes: MemoryHoldNotes;
let webhooks: MemoryWaiting['webhooks'];
let appHolds: MemoryWaiting['appHolds'];
let suspended: Set<string>;
/** By webhook, when the next probe of its open circuit may be made. */
let openCircuits: Map<string, number>;
/** Ids of the published deliveries, in order. */
let [published, publishedAtMs]: [string[], number[]] = [[], []];
/** How many of a webhook its endpoint takes in a second. */
let perSecond: Map<string, number>;
let [mostOpen, claims] = [0, 0];
let workers: ClaimedWork[];

beforeEach(() => {
  timers = createVirtualTimers();
  memory = createMemoryWaiting();
  ({ deliveries, webhooks, appHolds, suspended } = memory);
  notes = createMemoryHoldNotes();
  perSecond = new Map();
  openCircuits = new Map();
  [published, publishedAtMs] = [[], []];
  [mostOpen, claims, workers] = [0, 0, []];
});

afterEach(() => Promise.all(workers.map((each) => each.stop())));

/** Adds deliveries that wait for the webhook, and the webhook. */
function wait(
  webhookId: string,
  count: number,
  { appId = null, createdAtMs = 1 }: { appId?: string | null; createdAtMs?: number } = {},
): string[] {
  if (!webhooks.has(webhookId)) webhooks.set(webhookId, { appId, ...FREE });
  return Array.from({ length: count }, (_, n) => {
    const id = `dlv_${String(deliveries.size).padStart(6, '0')}`;
    const ref = { messageId: `msg_${deliveries.size}`, webhookId, companyId: 'comp_a', appId };
    const since = { createdAtMs, waitingSinceMs: timers.nowMs(), dueAtMs: 0 };
    deliveries.set(id, { id, ...ref, ...since, attemptCount: n % 3, state: 'waiting' });
    return id;
  });
}

function touch(id: string, kind: HoldPlace['kind'], ratePerSecond: number | null = null): void {
  const nowMs = timers.nowMs();
  const rate = kind !== 'company' && { ratePerSecond };
  notes.touch({ id, companyId: 'comp_a', kind }, { atMs: nowMs, dueAtMs: nowMs, ...rate });
}

const sleep: ReleaseNotesDeps['sleep'] = (ms, signal) =>
  new Promise<void>((resolve, reject) => {
    const cancel = timers.after(ms, resolve);
    signal.addEventListener('abort', () => {
      cancel();
      reject(signal.reason as Error);
    });
  });

const notesStore = (): ReleaseNotesDeps['notes'] => ({
  ...asyncNotes(notes),
  expand: (...given) => Promise.resolve(notes.expand(...given)),
  noteOpenEnded(note) {
    notes.noteOpenEnded(note);
    return Promise.resolve();
  },
  noteEnd(...given) {
    notes.noteEnd(...given);
    return Promise.resolve();
  },
  remove: (note) => Promise.resolve(notes.remove(note)),
  rateOf: (id) => Promise.resolve(notes.rateOf(id)),
});

function publish(records: readonly OutgoingRecord[]): Promise<void> {
  for (const { value } of records) {
    const due = decodeRetryDue(value);
    const found = [...deliveries.values()].find((each) => each.messageId === due.messageId);
    if (!found) throw new Error('it is stored');
    expect(due.attemptNumber).toBe(found.attemptCount + 1);
    expect(due.trigger).toBe(due.attemptNumber === 1 ? 'first' : 'retry');
    published.push(found.id);
    publishedAtMs.push(timers.nowMs());
  }
  return Promise.resolve();
}

function worker(overrides: Partial<ReleaseNotesDeps> = {}): ClaimedWork {
  const created = createReleases({
    notes: notesStore(),
    waiting: memory.waiting,
    holds: memory.holds,
    deliveries: {
      cancelPending(cancelled) {
        for (const { id, reason } of cancelled)
          Object.assign(deliveries.get(id) ?? {}, { state: 'cancelled', reason });
        return Promise.resolve({ matched: cancelled.length });
      },
    },
    sequences: { makeDue: () => Promise.resolve() },
    circuits: { read: (_companyId, id) => Promise.resolve(openCircuits.get(id) ?? null) },
    records: { publish },
    retryDueTopic: 'due',
    pageBudget: createPageBudget(16_777_216),
    count: () => undefined,
    freeKeys: () => Promise.resolve(),
    resends: { continueHeld: () => Promise.resolve(false) },
    wakeResends: () => undefined,
    invalidate: () => Promise.resolve(),
    newClaim: () => `claim-${(claims += 1)}`,
    nowMs: timers.nowMs,
    earlierMs: timers.nowMs,
    sleep,
    logger: createLogger('test', 'silent'),
    ...overrides,
  });
  workers.push(created);
  return created;
}

/** Moves on in steps, in which each endpoint takes its share of what is released. */
async function run(ms: number, ...working: ClaimedWork[]): Promise<void> {
  const endMs = timers.nowMs() + ms;
  const credit = new Map<string, number>();
  for (let n = 0; timers.nowMs() < endMs; n += 1) {
    if (n % 50 === 0) for (const each of working) void each.tick();
    await untilSettled();
    for (const [webhookId] of webhooks) {
      const open = memory.ofWebhook(webhookId, 'released');
      mostOpen = Math.max(mostOpen, open.length);
      const rate = perSecond.get(webhookId) ?? Infinity;
      const left = Math.min(open.length, (credit.get(webhookId) ?? 0) + (rate * STEP_MS) / 1_000);
      for (const each of open.slice(0, Math.floor(left))) each.state = 'done';
      credit.set(webhookId, left - Math.floor(left));
    }
    await timers.runUntil(timers.nowMs() + STEP_MS, untilSettled);
  }
}

describe('the release of a webhook', () => {
  test('publishes all that waits, once, oldest first and with the number of the next attempt', async () => {
    const ids = wait('wh_1', 1_200);
    touch('wh_1', 'webhook');
    await run(20 * SECOND_MS, worker());
    expect(published).toEqual(ids);
    expect(memory.ofWebhook('wh_1', 'done')).toHaveLength(1_200);
  });

  test('keeps an endpoint busy, and gives it no more than what it takes in some seconds', async () => {
    wait('wh_1', 3_000);
    perSecond.set('wh_1', 200);
    touch('wh_1', 'webhook');
    await run(10 * SECOND_MS, worker());
    expect(memory.ofWebhook('wh_1', 'done').length).toBeGreaterThan(1_800);
    expect(mostOpen).toBeLessThan(1_100);
  });

  test.each([1, 10, 200])('has the limit of four seconds under way: %d', async (limit) => {
    wait('wh_1', 10 * limit + 100);
    perSecond.set('wh_1', limit);
    Object.assign(webhooks.get('wh_1') ?? {}, { rateLimitPerSecond: limit });
    touch('wh_1', 'webhook');
    await run(10 * SECOND_MS, worker());
    expect(mostOpen).toBeLessThanOrEqual(4 * limit);
    expect(memory.ofWebhook('wh_1', 'done').length).toBeGreaterThan(9 * limit - 1);
  });

  test.each([1, 20, 50, 500])('keeps to a rate of %d in every second', async (rate) => {
    wait('wh_1', 10 * rate + 100);
    touch('wh_1', 'webhook', rate);
    const process = worker();
    for (const taken of [0, Infinity]) {
      perSecond.set('wh_1', taken);
      await run(6 * SECOND_MS, process);
    }
    for (const [n, atMs] of publishedAtMs.entries())
      expect((publishedAtMs[n + rate] ?? Infinity) - atMs).toBeGreaterThanOrEqual(SECOND_MS);
    expect(published.length).toBeGreaterThan(4 * rate);
  });

  test('takes up a rate that is asked for while it runs, and ends with it', async () => {
    wait('wh_1', 5_000);
    perSecond.set('wh_1', 300);
    touch('wh_1', 'webhook');
    const process = worker();
    await run(4 * SECOND_MS, process);
    expect(published.length).toBeGreaterThan(500);
    touch('wh_1', 'webhook', 10);
    await run(3 * SECOND_MS, process);
    let before = published.length;
    await run(10 * SECOND_MS, process);
    expect(published.length - before).toBeGreaterThanOrEqual(90);
    expect(published.length - before).toBeLessThanOrEqual(110);
    touch('wh_1', 'webhook', null);
    await run(3 * SECOND_MS, process);
    before = published.length;
    await run(2 * SECOND_MS, process);
    expect(published.length - before).toBeGreaterThan(300);
  });

  test('cancels what waits of a webhook that is disabled while its rate lets nothing through', async () => {
    wait('wh_1', 100);
    touch('wh_1', 'webhook', 0.01);
    const process = worker();
    await run(2 * SECOND_MS, process);
    Object.assign(webhooks.get('wh_1') ?? {}, { disabled: true });
    await run(4 * SECOND_MS, process);
    expect(memory.ofWebhook('wh_1', 'waiting')).toEqual([]);
  });

  test('is continued by another process when its own stops', async () => {
    const ids = wait('wh_1', 600);
    perSecond.set('wh_1', 50);
    touch('wh_1', 'webhook');
    const first = worker();
    await run(2 * SECOND_MS, first);
    await first.stop();
    await run(30 * SECOND_MS, worker());
    expect(new Set(published)).toEqual(new Set(ids));
    expect(memory.ofWebhook('wh_1', 'done')).toHaveLength(600);
  });

  test('has no more under way when it begins again and again', async () => {
    for (let n = 0; n < 6; n += 1) {
      wait(`wh_${n}`, 300);
      perSecond.set(`wh_${n}`, 1);
      touch(`wh_${n}`, 'webhook');
    }
    const working = [worker(), worker()];
    for (let second = 0; second < 20; second += 1) {
      await run(SECOND_MS, ...working);
      touch('wh_0', 'webhook');
      working[second % 2]?.wake();
    }
    expect(mostOpen).toBeLessThanOrEqual(100);
  });

  test.each([1, 300])(
    'is not kept up by what an earlier one released and was deferred: %d',
    async (count) => {
      for (const id of wait('wh_1', count))
        Object.assign(deliveries.get(id) ?? {}, { state: 'deferred' });
      const ids = wait('wh_1', 500);
      touch('wh_1', 'webhook');
      await run(15 * SECOND_MS, worker());
      expect(published).toEqual(ids);
    },
  );

  test('releases one at a time beside deferred ones while its endpoint takes none', async () => {
    for (const id of wait('wh_1', 100))
      Object.assign(deliveries.get(id) ?? {}, { state: 'deferred' });
    wait('wh_1', 500);
    perSecond.set('wh_1', 0);
    touch('wh_1', 'webhook');
    await run(10 * MINUTE_MS, worker());
    expect(published.length).toBeLessThanOrEqual(10);
  });

  test('waits while its circuit is open', async () => {
    wait('wh_1', 500);
    openCircuits.set('wh_1', timers.nowMs() + HOUR_MS);
    touch('wh_1', 'webhook');
    await run(MINUTE_MS, worker());
    expect(published).toEqual([]);
    openCircuits.clear();
    await run(2 * MINUTE_MS, worker());
    expect(published).toHaveLength(500);
  });

  test('begins with one delivery when its circuit opened before the hold', async () => {
    const ids = wait('wh_1', 500);
    openCircuits.set('wh_1', timers.nowMs() - SECOND_MS);
    touch('wh_1', 'webhook');
    perSecond.set('wh_1', 0);
    const runner = worker();
    await run(2 * SECOND_MS, runner);
    expect(published).toEqual(ids.slice(0, 1));
    perSecond.clear();
    openCircuits.clear();
    await run(10 * SECOND_MS, runner);
    expect(published).toEqual(ids);
  });

  test('makes one delivery for each probe while the endpoint fails', async () => {
    wait('wh_1', 500);
    openCircuits.set('wh_1', timers.nowMs());
    touch('wh_1', 'webhook');
    const pages: number[] = [];
    const failing: ReleaseNotesDeps['records'] = {
      publish(records) {
        pages.push(records.length);
        openCircuits.set('wh_1', timers.nowMs() + 30 * SECOND_MS);
        return publish(records);
      },
    };
    await run(10 * MINUTE_MS, worker({ records: failing }));
    expect(pages.length).toBeGreaterThan(3);
    expect(pages.length).toBeLessThanOrEqual(20);
    expect(new Set(pages)).toEqual(new Set([1]));
  });

  test('stops with the next page when the webhook is put on hold again', async () => {
    wait('wh_1', 5_000);
    perSecond.set('wh_1', 100);
    touch('wh_1', 'webhook');
    const runner = worker();
    await run(3 * SECOND_MS, runner);
    Object.assign(webhooks.get('wh_1') ?? {}, { held: HOLD });
    touch('wh_1', 'webhook');
    const before = published.length;
    await run(MINUTE_MS, runner);
    expect(published.length).toBe(before);
    expect(notes.all.has('wh_1')).toBe(true);
  });

  test('cancels what waits when the webhook is disabled, although it is on hold', async () => {
    wait('wh_1', 1_500);
    Object.assign(webhooks.get('wh_1') ?? {}, { held: HOLD, disabled: true });
    touch('wh_1', 'webhook');
    await run(5 * SECOND_MS, worker());
    expect([published, memory.ofWebhook('wh_1', 'cancelled').length]).toEqual([[], 1_500]);
  });

  test('cancels what a client has cancelled meanwhile, and releases the others', async () => {
    wait('wh_1', 20);
    wait('wh_1', 10, { createdAtMs: 5 });
    Object.assign(webhooks.get('wh_1') ?? {}, { cancelBeforeMs: 5 });
    touch('wh_1', 'webhook');
    await run(5 * SECOND_MS, worker());
    expect([memory.ofWebhook('wh_1', 'cancelled').length, published.length]).toEqual([20, 10]);
  });

  test('cancels those whose message has expired, and publishes no attempt of them', async () => {
    const [cancelled = '', expired = '', later = ''] = wait('wh_1', 3, { createdAtMs: 5 });
    const endsAt = (id: string, expiresAtMs: number, changes: Partial<WaitingDelivery> = {}) =>
      Object.assign(deliveries.get(id) ?? {}, { expiresAtMs, ...changes });
    endsAt(cancelled, timers.nowMs(), { createdAtMs: 4 });
    endsAt(expired, timers.nowMs());
    endsAt(later, timers.nowMs() + MINUTE_MS);
    Object.assign(webhooks.get('wh_1') ?? {}, { cancelBeforeMs: 5 });
    touch('wh_1', 'webhook');
    await run(5 * SECOND_MS, worker());
    expect(published).toEqual([later]);
    expect(deliveries.get(cancelled)).toMatchObject({ reason: 'cancelled_by_client' });
    expect(deliveries.get(expired)).toMatchObject({ state: 'cancelled', reason: 'expired' });
  });

  test('shows that nobody has ended its hold, which does not end by itself', async () => {
    wait('wh_1', 1);
    wait('wh_2', 1);
    Object.assign(webhooks.get('wh_1') ?? {}, { held: HOLD });
    Object.assign(webhooks.get('wh_2') ?? {}, {
      held: { ...HOLD, untilMs: timers.nowMs() + HOUR_MS },
    });
    suspended.add('comp_a');
    touch('wh_1', 'webhook');
    touch('wh_2', 'webhook');
    touch('comp_a', 'company');
    await run(3 * SECOND_MS, worker());
    const openEnded = [...notes.all.values()].filter(({ isOpenEnded }) => isOpenEnded);
    expect(openEnded.map(({ id }) => id)).toEqual(['wh_1']);
  });

  test('begins by itself when the time of the hold is over', async () => {
    wait('wh_1', 1);
    const untilMs = timers.nowMs() + 90 * SECOND_MS;
    Object.assign(webhooks.get('wh_1') ?? {}, { held: { ...HOLD, untilMs } });
    touch('wh_1', 'webhook');
    const runner = worker();
    await run(89 * SECOND_MS, runner);
    expect(published).toEqual([]);
    await run(3 * SECOND_MS, runner);
    expect(published).toHaveLength(1);
    expect(webhooks.get('wh_1')?.held).toBeNull();
    // A dispatcher may record it late, as after any other end.
    await run(20 * SECOND_MS, runner);
    wait('wh_1', 1);
    await run(20 * SECOND_MS, runner);
    expect(published).toHaveLength(2);
    await run(2 * MINUTE_MS, runner);
    expect(notes.all.size).toBe(0);
  });

  test('finds what a dispatcher made wait after the last page, and forgets the note a minute later', async () => {
    wait('wh_1', 1);
    touch('wh_1', 'webhook');
    const runner = worker();
    await run(10 * SECOND_MS, runner);
    wait('wh_1', 1);
    await run(20 * SECOND_MS, runner);
    expect(published).toHaveLength(2);
    await run(2 * MINUTE_MS, runner);
    expect(notes.all.size).toBe(0);
  });

  test('publishes a delivery that waits again once more', async () => {
    const [id = ''] = wait('wh_1', 1);
    touch('wh_1', 'webhook');
    const runner = worker();
    perSecond.set('wh_1', 0);
    await run(200, runner);
    expect(published).toEqual([id]);
    Object.assign(deliveries.get(id) ?? {}, { state: 'waiting' });
    perSecond.clear();
    await run(2 * SECOND_MS, runner);
    expect(published).toEqual([id, id]);
  });
});

describe('the release of an app', () => {
  test('leaves webhooks with a hold of their own, and those of other apps', async () => {
    wait('wh_1', 5, { appId: 'app_1' });
    wait('wh_2', 5, { appId: 'app_1' });
    wait('wh_3', 5, { appId: 'app_2' });
    Object.assign(webhooks.get('wh_2') ?? {}, { held: HOLD });
    touch('app_1', 'app');
    await run(5 * SECOND_MS, worker());
    const waiting = ['wh_1', 'wh_2', 'wh_3'].map((id) => memory.ofWebhook(id, 'waiting').length);
    expect(waiting).toEqual([0, 5, 5]);
  });

  test('gives a webhook all it takes beside a slow one, also what began to wait just after the end', async () => {
    wait('wh_slow', 3_000, { appId: 'app_1' });
    perSecond.set('wh_slow', 1);
    wait('wh_cut', 100, { appId: 'app_1' });
    openCircuits.set('wh_cut', timers.nowMs() + 25 * SECOND_MS);
    perSecond.set('wh_cut', 100);
    touch('app_1', 'app');
    const workers = [worker(), worker()];
    await run(200, ...workers);
    wait('wh_late', 5, { appId: 'app_1' });
    await run(2 * SECOND_MS, ...workers);
    expect(memory.ofWebhook('wh_late', 'done')).toHaveLength(5);
    await run(38 * SECOND_MS, ...workers);
    openCircuits.clear();
    await run(20 * SECOND_MS, ...workers);
    expect(memory.ofWebhook('wh_cut', 'done')).toHaveLength(100);
    expect(memory.ofWebhook('wh_slow', 'done').length).toBeLessThan(100);
  });

  test('is as fast with many slow webhooks, each of which begins at once', async () => {
    const [slow, fast] = [50, 5];
    for (let n = 0; n < slow + fast; n += 1) {
      wait(`wh_${n}`, n < slow ? 20 : 300, { appId: 'app_1' });
      perSecond.set(`wh_${n}`, n < slow ? 1 : 100);
    }
    touch('app_1', 'app');
    const runner = worker();
    await run(SECOND_MS, runner);
    expect(new Set(published.map((id) => deliveries.get(id)?.webhookId)).size).toBe(slow + fast);
    await run(3 * SECOND_MS, runner);
    for (let n = slow; n < slow + fast; n += 1)
      expect(memory.ofWebhook(`wh_${n}`, 'done')).toHaveLength(300);
  });

  test('leaves the rate that was asked for one of its webhooks afterwards', async () => {
    wait('wh_1', 1_000, { appId: 'app_1' });
    wait('wh_2', 1_000, { appId: 'app_1' });
    touch('app_1', 'app');
    await timers.runUntil(timers.nowMs() + 1, untilSettled);
    touch('wh_1', 'webhook', 1);
    await run(10.9 * SECOND_MS, worker());
    expect(published.filter((id) => deliveries.get(id)?.webhookId === 'wh_1')).toHaveLength(10);
    expect(memory.ofWebhook('wh_2', 'waiting')).toEqual([]);
  });

  test('gives its webhooks the time at which its hold has ended by itself', async () => {
    wait('wh_1', 1, { appId: 'app_1' });
    const untilMs = timers.nowMs() + 90 * SECOND_MS;
    appHolds.set('app_1', { ...HOLD, untilMs });
    touch('app_1', 'app');
    await run(90.5 * SECOND_MS, worker());
    expect(published).toHaveLength(1);
    expect(notes.all.get('wh_1')?.touchedAtMs).toBeGreaterThanOrEqual(untilMs);
  });

  test('begins when the app is resumed, and not before', async () => {
    wait('wh_1', 3, { appId: 'app_1' });
    appHolds.set('app_1', HOLD);
    touch('app_1', 'app');
    const runner = worker();
    await run(10 * MINUTE_MS, runner);
    expect(published).toEqual([]);
    appHolds.clear();
    touch('app_1', 'app');
    await run(2 * SECOND_MS, runner);
    expect(published).toHaveLength(3);
  });
});

test('the release of a company covers all its webhooks once it is resumed', async () => {
  wait('wh_1', 3, { appId: 'app_1' });
  wait('wh_2', 3);
  suspended.add('comp_a');
  touch('comp_a', 'company');
  const runner = worker();
  await run(MINUTE_MS, runner);
  expect(published).toEqual([]);
  suspended.clear();
  touch('comp_a', 'company');
  await run(2 * SECOND_MS, runner);
  expect(published).toHaveLength(6);
});

test('the rate of a webhook outlasts a suspension of its company', async () => {
  wait('wh_1', 500);
  touch('wh_1', 'webhook', 1);
  suspended.add('comp_a');
  const runner = worker();
  await run(10 * MINUTE_MS, runner);
  suspended.clear();
  touch('comp_a', 'company');
  await run(10.9 * SECOND_MS, runner);
  expect(published).toHaveLength(10);
});
