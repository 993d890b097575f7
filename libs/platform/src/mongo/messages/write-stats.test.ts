import { beforeEach, describe, expect, test } from '@jest/globals';
import { attemptsIn, HOUR_MS } from '@posthorn/domain/stats.ts';
import { createSums, type JournalEntry } from './count-journal.ts';
import type { UsageCounts } from './stats-documents.ts';
import { CountBuffer } from './write-stats.ts';

const HOUR = Date.UTC(2026, 10, 24, 6);
const COUNT_BYTES = 1_200;

let nowMs: number;
let written: JournalEntry[][];
/** What MongoDB does with a write. */
let append: (entries: readonly JournalEntry[]) => Promise<void>;
let buffer: CountBuffer;

beforeEach(() => {
  [nowMs, written] = [0, []];
  append = (entries) => Promise.resolve(void written.push(structuredClone([...entries])));
  buffer = open(1_000);
});

function open(maxCounts: number, process = 'process'): CountBuffer {
  return new CountBuffer({
    budgetBytes: maxCounts * COUNT_BYTES,
    process,
    append: (entries) => append(entries),
    monotonicMs: () => nowMs,
  });
}

function count(webhookId: string, { minute = 0, companyId = 'comp_a' } = {}): void {
  const attempt = {
    outcome: 'success',
    number: 1,
    trigger: 'first',
    startedAtMs: HOUR + minute * 60_000,
    durationMs: 40,
  } as const;
  buffer.countAttempt({ companyId, webhookId, appId: 'app_1' }, { attempt, payloadBytes: 100 });
}

const away = () => Promise.reject(new Error('away'));
const attemptsOf = (entries: readonly JournalEntry[]) =>
  entries.flatMap(({ attempts }) =>
    attempts.map(({ webhookId, counts }) => [webhookId, attemptsIn(counts)]),
  );

describe('counts that are written behind', () => {
  test('are one count for everything of a webhook and minute, and one document for a company', async () => {
    for (let n = 0; n < 50; n += 1) count('wh_1');
    count('wh_1', { minute: 1 });
    count('wh_2');
    nowMs = 4_999;
    await buffer.tick();
    expect(written).toEqual([]);
    nowMs = 5_000;
    await buffer.tick();
    const [entries = []] = written;
    expect(entries.map(({ id }) => id)).toEqual(['2026-11-24T06:00/process/1']);
    expect(attemptsOf(entries)).toEqual([
      ['wh_1', 50],
      ['wh_1', 1],
      ['wh_2', 1],
    ]);
    expect(buffer.usedBytes()).toBe(0);
  });

  test('wait longer when they fill many documents, a minute at most', async () => {
    buffer = open(100_000);
    const countAll = () => {
      for (let n = 0; n < 5_000; n += 1) count(`wh_${n}`, { companyId: `comp_${n}` });
    };
    countAll();
    nowMs = 5_000;
    await buffer.tick();
    const entries = written.flat().length;
    expect(entries).toBeGreaterThan(900);
    countAll();
    nowMs = 4_999 + entries * 50;
    await buffer.tick();
    expect(written.flat()).toHaveLength(entries);
    nowMs = 65_000;
    await buffer.tick();
    expect(written.flat()).toHaveLength(entries * 2);
  });

  test('are written at once when two thirds of the memory are used', async () => {
    buffer = open(9);
    for (let n = 0; n < 5; n += 1) count(`wh_${n}`);
    await buffer.tick();
    expect(written).toEqual([]);
    count('wh_5');
    await buffer.tick();
    expect(attemptsOf(written.flat())).toHaveLength(6);
  });

  test('leave no room when MongoDB takes none, and are kept nevertheless', async () => {
    append = away;
    buffer = open(2);
    count('wh_1');
    expect(buffer.hasRoom()).toBe(true);
    count('wh_2');
    expect(buffer.hasRoom()).toBe(false);
    count('wh_3');
    await expect(buffer.tick()).rejects.toThrow('away');
    expect(buffer.usedBytes()).toBe(3 * COUNT_BYTES);
    append = (entries) => Promise.resolve(void written.push([...entries]));
    await buffer.tick();
    expect(written).toEqual([]);
    nowMs = 2_000;
    await buffer.tick();
    expect(attemptsOf(written.flat())).toEqual([
      ['wh_1', 1],
      ['wh_2', 1],
      ['wh_3', 1],
    ]);
    expect(buffer.hasRoom()).toBe(true);
  });

  test('are written again under the same ids, without those that came meanwhile', async () => {
    const tried: JournalEntry[][] = [];
    append = (entries) => {
      tried.push(structuredClone([...entries]));
      return away();
    };
    count('wh_1');
    nowMs = 5_000;
    await expect(buffer.tick()).rejects.toThrow('away');
    count('wh_1');
    append = (entries) => Promise.resolve(void written.push([...entries]));
    nowMs = 10_000;
    await buffer.tick();
    expect(written[0]?.slice(0, 1)).toEqual(tried[0]);
    expect(attemptsOf(written.flat())).toEqual([
      ['wh_1', 1],
      ['wh_1', 1],
    ]);
  });

  test('are written at the stop whatever their age, and those that are not are lost', async () => {
    count('wh_1');
    expect(await buffer.flush()).toBe(0);
    expect(attemptsOf(written.flat())).toEqual([['wh_1', 1]]);
    count('wh_1');
    count('wh_1');
    append = away;
    buffer.countMessage({ companyId: 'comp_a', createdAtMs: HOUR, payloadBytes: 10 });
    expect(await buffer.flush()).toBe(3);
  });
});

/** Numbers from 0 to 1 that are the same in each run. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A journal that is away at times, and at times takes a write without confirming it. */
function createJournal(random: () => number) {
  const entries = new Map<string, JournalEntry>();
  let isAway = false;
  return {
    setAway: (value: boolean) => void (isAway = value),
    append(added: readonly JournalEntry[]): Promise<void> {
      if (isAway) return Promise.reject(new Error('away'));
      for (const entry of added) if (!entries.has(entry.id)) entries.set(entry.id, entry);
      return random() < 0.1 ? Promise.reject(new Error('not confirmed')) : Promise.resolve();
    },
    usage(): UsageCounts[] {
      const sums = createSums();
      for (const entry of entries.values()) sums.add(entry);
      return sums.usage();
    },
  };
}

/** Less than a gateway has, so that it is full when MongoDB is away for two minutes and a half. */
const GATEWAY_BYTES = 2 ** 21;

/** An hour of simulated time, 60 messages a second. The process is killed in the middle of it, and another begins. */
test('the usage of 50,000 companies in an hour is what was sent, but for the minute before a kill', async () => {
  const random = createRandom(7);
  const journal = createJournal(random);
  append = (entries) => journal.append(entries);
  buffer = open(GATEWAY_BYTES / COUNT_BYTES, 'process-1');
  const killedMs = HOUR_MS / 2 + 11_000;
  const sent = new Map<string, number>();
  const beforeKill = new Map<string, number>();
  let refused = 0;
  const add = (to: Map<string, number>, id: string) => to.set(id, (to.get(id) ?? 0) + 1);
  for (nowMs = 0; nowMs < HOUR_MS; nowMs += 1_000) {
    // Two and a half minutes in every ten without MongoDB, none of them around the kill.
    journal.setAway(nowMs % 600_000 >= 300_000 && nowMs % 600_000 < 450_000);
    for (let n = 0; n < 60; n += 1) {
      const companyId = `comp_${Math.floor(random() * 50_000)}`;
      if (!buffer.hasRoom()) {
        refused += 1;
        continue;
      }
      buffer.countMessage({ companyId, createdAtMs: HOUR + nowMs, payloadBytes: 10 });
      add(sent, companyId);
      if (nowMs > killedMs - 60_000 && nowMs <= killedMs) add(beforeKill, companyId);
    }
    if (nowMs === killedMs) buffer = open(GATEWAY_BYTES / COUNT_BYTES, 'process-2');
    await buffer.tick().catch(() => undefined);
  }
  journal.setAway(false);
  while ((await buffer.flush()) > 0);
  const counted = new Map(journal.usage().map((usage) => [usage.companyId, usage]));
  let lost = 0;
  for (const [companyId, messages] of sent) {
    const { messages: found = 0, messageBytes = 0 } = counted.get(companyId) ?? {};
    const missing = messages - found;
    if (messageBytes !== found * 10 || missing < 0 || missing > (beforeKill.get(companyId) ?? 0))
      throw new Error(`${companyId} sent ${messages}, and ${found} are counted`);
    lost += missing;
  }
  expect(sent.size).toBeGreaterThan(48_000);
  expect(refused).toBeGreaterThan(0);
  expect(lost).toBeGreaterThan(0);
  expect(lost).toBeLessThanOrEqual(60 * 60);
});
