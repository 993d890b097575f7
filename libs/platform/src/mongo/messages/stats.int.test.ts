import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { beginningOf, countAttempt, noAttempts } from '@posthorn/domain/stats.ts';
import type { Outcome } from '@posthorn/domain/delivery/delivery.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createStatsStore, noUsage, type OwnerHour, type StatsStore } from './stats-documents.ts';
import { createStatsQueries, type StatsQueries } from './stats-queries.ts';

const at = (text: string): number => Date.parse(`2026-11-24T${text}Z`);
const DAY = { fromMs: at('00:00:00'), toMs: at('24:00:00') };
const OWNER = { companyId: 'comp_a', ownerId: 'wh_1' };

const database = duringTests(openScratchDatabase, ({ drop }) => drop());
let store: StatsStore;
let queries: StatsQueries;

beforeAll(() => {
  store = createStatsStore(database.db);
  queries = createStatsQueries(database.db);
});
beforeEach(async () => {
  for (const name of ['stats', 'usage'] as const)
    await collection(database.db, name).deleteMany({});
});

/** One attempt to wh_1 that ended in that minute, unless said otherwise. */
function attemptIn(
  minute: string,
  outcome: Outcome = 'success',
  changed: Partial<OwnerHour> = {},
): OwnerHour {
  const counts = noAttempts();
  const attempt = { outcome, number: 1, trigger: 'first', startedAtMs: 0, durationMs: 40 } as const;
  countAttempt(counts, { attempt, payloadBytes: 100 });
  const hourMs = beginningOf('hour', at(minute));
  const minutes = new Map([[at(minute), counts]]);
  return { kind: 'webhook', ...OWNER, hourMs, minutes, ...changed };
}

const read = async (step: 'minute' | 'hour' | 'day', span = DAY) =>
  (await queries.readSteps(OWNER, step, span)).map(({ atMs, counts }) => [atMs, counts.outcomes]);

describe('the statistics of an owner', () => {
  it('are added up over writes, by minute, hour and day', async () => {
    await store.addHours([attemptIn('06:28:00'), attemptIn('07:00:00')], 1);
    await store.addHours([attemptIn('06:28:00', 'http_5xx')], 2);
    await store.addHours([attemptIn('06:05:00')], 3);
    expect(await read('minute')).toEqual([
      [at('06:05:00'), { success: 1 }],
      [at('06:28:00'), { success: 1, http_5xx: 1 }],
      [at('07:00:00'), { success: 1 }],
    ]);
    expect(await read('hour')).toEqual([
      [at('06:00:00'), { success: 2, http_5xx: 1 }],
      [at('07:00:00'), { success: 1 }],
    ]);
    const [day] = await queries.readSteps(OWNER, 'day', DAY);
    expect(day).toEqual({
      atMs: at('00:00:00'),
      counts: {
        outcomes: { success: 3, http_5xx: 1 },
        firstAttempts: 4,
        payloadBytes: 400,
        durationMs: 160,
        maxDurationMs: 40,
        durations: { 5: 4 },
      },
    });
  });

  it('are the same when a step adds many minutes at once', async () => {
    const minutesAt = (texts: string[]) =>
      new Map(texts.flatMap((text) => [...attemptIn(text).minutes]));
    const many = minutesAt(['06:40:00', '06:28:00', '06:03:00', '06:29:00']);
    await store.addHours([attemptIn('06:28:00', 'http_5xx')], 1);
    await store.addHours([attemptIn('06:28:00', 'success', { minutes: many })], 2);
    await store.addHours([attemptIn('06:28:00', 'success', { minutes: many })], 3);
    expect(await read('minute')).toEqual([
      [at('06:03:00'), { success: 2 }],
      [at('06:28:00'), { success: 2, http_5xx: 1 }],
      [at('06:29:00'), { success: 2 }],
      [at('06:40:00'), { success: 2 }],
    ]);
    expect(await read('hour')).toEqual([[at('06:00:00'), { success: 8, http_5xx: 1 }]]);
    const [failing] = await queries.readFailing('comp_a', 'minute', DAY);
    expect(failing?.seen.get('http_5xx')).toEqual({
      firstMs: at('06:28:00'),
      lastMs: at('06:28:00'),
    });
  });

  it('are of the span that is asked for, its end not included', async () => {
    const minutes = ['06:28:00', '06:29:00', '06:30:00'].flatMap((text) => [
      ...attemptIn(text).minutes,
    ]);
    await store.addHours([attemptIn('06:28:00', 'success', { minutes: new Map(minutes) })], 1);
    const span = { fromMs: at('06:29:00'), toMs: at('06:30:00') };
    expect(await read('minute', span)).toEqual([[at('06:29:00'), { success: 1 }]]);
  });

  it('are shown to its own company only', async () => {
    await store.addHours([attemptIn('06:28:00')], 1);
    const foreign = { companyId: 'comp_b', ownerId: 'wh_1' };
    expect(await queries.readSteps(foreign, 'minute', DAY)).toEqual([]);
  });

  it('have each step once, however often it is added, also after a later one', async () => {
    await store.addHours([attemptIn('06:28:00')], 4);
    await store.addHours([attemptIn('06:28:00'), attemptIn('07:28:00')], 4);
    await store.addHours([attemptIn('07:28:00')], 5);
    await store.addHours([attemptIn('06:28:00'), attemptIn('07:28:00')], 4);
    expect(await read('hour')).toEqual([
      [at('06:00:00'), { success: 1 }],
      [at('07:00:00'), { success: 2 }],
    ]);
  });

  it('are complete when many processes begin the same hour at once', async () => {
    const steps = Array.from({ length: 20 }, (_, n) => n + 1);
    const hours = steps.map((n) => attemptIn('06:28:00', 'success', { ownerId: `wh_${n}` }));
    // All of them with the same step, as processes do that finish it.
    await Promise.all(steps.map(() => store.addHours(hours, 1)));
    const stored = await collection(database.db, 'stats').find().toArray();
    expect(stored.map(({ total }) => total.outcomes)).toEqual(steps.map(() => ({ success: 1 })));
  });
});

describe('the endpoints of an hour', () => {
  it('that only failed are found, of every company', async () => {
    const other = { companyId: 'comp_b', ownerId: 'wh_2' };
    const hours = [
      attemptIn('05:31:00'),
      attemptIn('06:15:00', 'timeout'),
      attemptIn('06:15:00', 'http_5xx', other),
      attemptIn('06:16:00', 'success', other),
      attemptIn('06:15:00', 'http_5xx', { kind: 'app', ownerId: 'app_1' }),
    ];
    for (const [n, hour] of hours.entries()) await store.addHours([hour], n + 1);
    const hourMs = at('06:00:00');
    expect(await queries.readFailingIn(hourMs)).toEqual([
      { webhookId: 'wh_1', companyId: 'comp_a' },
    ]);
    expect(await queries.hasSuccessIn(hourMs)).toBe(true);
    expect(await queries.hasSuccessIn(at('07:00:00'))).toBe(false);
  });
});

describe('what companies used', () => {
  it('is added up over writes and hours', async () => {
    const used = {
      messages: 2,
      messageBytes: 20,
      deliveries: 3,
      attempts: 4,
      succeeded: 1,
      sentBytes: 40,
    };
    const usage = { ...noUsage('comp_a', at('06:00:00')), ...used };
    await store.addUsage([usage], 1);
    await store.addUsage([usage, { ...usage, hourMs: at('07:00:00') }], 2);
    await store.addUsage([{ ...usage, companyId: 'comp_b', hourMs: at('08:00:00') }], 1);
    const span = { fromMs: at('06:00:00'), toMs: at('08:00:00') };
    expect(await queries.readUsage(span)).toEqual([
      {
        companyId: 'comp_a',
        messages: 6,
        messageBytes: 60,
        deliveries: 9,
        attempts: 12,
        succeeded: 3,
        sentBytes: 120,
      },
    ]);
  });
});
