import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { HOUR_MS, noAttempts, type WebhookMinute } from '@posthorn/domain/stats.ts';
import type { Outcome } from '@posthorn/domain/delivery/delivery.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import {
  type AppendCounts,
  bucketOf,
  type CountJournal,
  createAppendCounts,
  createCountJournal,
  type JournalEntry,
} from './count-journal.ts';
import { createStatsStore } from './stats-documents.ts';
import { createStatsQueries } from './stats-queries.ts';
import { CountBuffer } from './write-stats.ts';

const HOUR = Date.UTC(2026, 10, 24, 6);
const SPAN = { fromMs: HOUR, toMs: HOUR + HOUR_MS };
const COMPANIES = ['comp_a', 'comp_b', 'comp_removed'];

const database = duringTests(openScratchDatabase, ({ drop }) => drop());
let append: AppendCounts;
let journal: CountJournal;

beforeAll(() => {
  append = createAppendCounts(database.db);
  journal = createCountJournal(database.db);
});
beforeEach(async () => {
  const names = ['stats', 'usage', 'countJournal', 'countSteps', 'companies'] as const;
  for (const name of names) await collection(database.db, name).deleteMany({});
  const createdAt = new Date(HOUR);
  await collection(database.db, 'companies').insertMany(
    COMPANIES.map((_id) => ({
      _id,
      name: _id,
      createdAt,
      ...(_id === 'comp_removed' && { removalAt: createdAt }),
    })),
  );
});

/** Two attempts to a webhook in the first minute of the hour. */
function attemptsTo(webhookId: string, outcome: Outcome, companyId = 'comp_a'): WebhookMinute {
  const counts = { ...noAttempts(), outcomes: { [outcome]: 2 }, firstAttempts: 1 };
  return { companyId, webhookId, appId: `app_of_${companyId}`, minuteMs: HOUR, counts };
}

function entry(n: number, ...attempts: WebhookMinute[]): JournalEntry {
  const [companyId = 'comp_a'] = attempts.map((counted) => counted.companyId);
  const messages = [{ companyId, hourMs: HOUR, messages: 1, messageBytes: 10 }];
  const id = `2026-11-24T06:00/process/${n}`;
  return { id, bucket: bucketOf(companyId), attempts, messages };
}

async function addUpAll(of = journal): Promise<void> {
  for (let next: number | null = 0; next !== null;) ({ next } = await of.addUp(next));
}

const outcomesOf = async (ownerId: string) => {
  const owner = { companyId: 'comp_a', ownerId };
  const steps = await createStatsQueries(database.db).readSteps(owner, 'minute', SPAN);
  return steps.map(({ counts }) => counts.outcomes);
};
const readUsage = () => createStatsQueries(database.db).readUsage(SPAN);

describe('the journal of counts', () => {
  it('is added up for each webhook, app and company, and for what the company used', async () => {
    await append([
      entry(1, attemptsTo('wh_1', 'success'), attemptsTo('wh_2', 'timeout')),
      entry(2, attemptsTo('wh_1', 'timeout')),
      entry(3, attemptsTo('wh_3', 'success', 'comp_b')),
    ]);
    await addUpAll();
    expect(await outcomesOf('wh_1')).toEqual([{ success: 2, timeout: 2 }]);
    expect(await outcomesOf('wh_2')).toEqual([{ timeout: 2 }]);
    expect(await outcomesOf('app_of_comp_a')).toEqual([{ success: 2, timeout: 4 }]);
    expect(await outcomesOf('comp_a')).toEqual([{ success: 2, timeout: 4 }]);
    expect(await readUsage()).toMatchObject([
      { companyId: 'comp_a', messages: 2, attempts: 6, succeeded: 2, deliveries: 3 },
      { companyId: 'comp_b', messages: 1, attempts: 2, succeeded: 2, deliveries: 1 },
    ]);
    expect(await journal.isEmpty()).toBe(true);
  });

  it('has each entry once, however often it is appended', async () => {
    await append([entry(1, attemptsTo('wh_1', 'success'))]);
    await append([1, 2].map((n) => entry(n, attemptsTo('wh_1', 'success'))));
    await addUpAll();
    expect(await outcomesOf('wh_1')).toEqual([{ success: 4 }]);
  });

  it('is not complete up to a time while an earlier count is in it', async () => {
    const { isAddedUpTo } = createStatsQueries(database.db);
    await append([entry(1, attemptsTo('wh_1', 'success'))]);
    expect(await isAddedUpTo(HOUR)).toBe(true);
    expect(await isAddedUpTo(HOUR + 60_000)).toBe(false);
    await addUpAll();
    expect(await isAddedUpTo(HOUR + 60_000)).toBe(true);
  });

  it('counts nothing for a company that is being removed', async () => {
    await append([entry(1, attemptsTo('wh_9', 'success', 'comp_removed'))]);
    await addUpAll();
    expect(await collection(database.db, 'stats').countDocuments()).toBe(0);
    expect(await readUsage()).toEqual([]);
    expect(await journal.isEmpty()).toBe(true);
  });

  it.each([
    ['before it added anything', 0],
    ['after the statistics of two owners', 2],
    ['after all statistics, and before the usage', 4],
  ])('is added up once when a process dies %s', async (_when, survives) => {
    await append([entry(1, attemptsTo('wh_1', 'success'), attemptsTo('wh_2', 'timeout'))]);
    const store = createStatsStore(database.db);
    const dying = createCountJournal(database.db, {
      async addHours(hours, step) {
        await store.addHours(hours.slice(0, survives), step);
        if (survives < hours.length) throw new Error('killed');
      },
      addUsage: () => Promise.reject(new Error('killed')),
    });
    await expect(addUpAll(dying)).rejects.toThrow('killed');
    // Counted after the step was begun: they wait for the next one.
    await append([entry(2, attemptsTo('wh_1', 'success'))]);
    await journal.addUp(0);
    expect(await outcomesOf('wh_1')).toEqual([{ success: 2 }]);
    await addUpAll();
    expect(await outcomesOf('wh_1')).toEqual([{ success: 4 }]);
    expect(await outcomesOf('comp_a')).toEqual([{ success: 4, timeout: 2 }]);
    expect(await readUsage()).toMatchObject([{ messages: 2, attempts: 6 }]);
  });

  it('is added up once by many processes at the same time', async () => {
    for (let n = 0; n < 10; n += 1) {
      await append([entry(n, attemptsTo('wh_1', 'success'))]);
      await Promise.all(Array.from({ length: 5 }, () => addUpAll()));
    }
    await addUpAll();
    expect(await outcomesOf('wh_1')).toEqual([{ success: 20 }]);
    expect(await readUsage()).toMatchObject([{ messages: 10, attempts: 20 }]);
  });
});

it('usage of 2,000 companies equals what was sent, but for what a killed process had not written', async () => {
  const ids = Array.from({ length: 2_000 }, (_, n) => `comp_${n}`);
  const createdAt = new Date(HOUR);
  await collection(database.db, 'companies').insertMany(
    ids.map((_id) => ({ _id, name: _id, createdAt })),
  );
  let nowMs = 0;
  const open = (process: string): CountBuffer =>
    new CountBuffer({ budgetBytes: 2 ** 20, process, append, monotonicMs: () => nowMs });
  const [killed, other] = [open('process-1'), open('process-2')];
  const count = (buffer: CountBuffer, companyId: string): void => {
    buffer.countMessage({ companyId, createdAtMs: HOUR, payloadBytes: 10 });
  };
  for (let second = 0; second < 60; second += 1) {
    nowMs = second * 1_000;
    // Each company once with both of them in 20 seconds.
    for (const companyId of ids.slice((second % 20) * 100, (second % 20) * 100 + 100)) {
      count(other, companyId);
      if (second < 40) count(killed, companyId);
    }
    await other.tick();
    if (second < 40) await killed.tick();
    if (second % 15 === 0) await addUpAll();
  }
  await killed.flush();
  // It is killed with this one.
  count(killed, 'comp_7');
  await other.flush();
  await addUpAll();
  const usage = await readUsage();
  expect(usage.map(({ companyId }) => companyId).sort()).toEqual([...ids].sort());
  expect(
    new Set(usage.map(({ messages, messageBytes }) => [messages, messageBytes].join())),
  ).toEqual(new Set(['5,50']));
});
