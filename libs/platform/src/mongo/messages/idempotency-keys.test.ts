import { expect, test } from '@jest/globals';
import { DAY_MS, firstIdAt } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import { createRandom } from '../../../../../test/support/samples/seeded-random.ts';
import {
  createRandomSchedule,
  type RandomSchedule,
} from '../../../../../test/support/time/random-schedule.ts';
import { claimSpanAt, createClaim, KEPT_MS, type KeyClaims } from './idempotency-keys.ts';

const MIDNIGHT = 20_000 * DAY_MS;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const keyed = (n: number): Message =>
  sampleMessage(`${firstIdAt('msg', MIDNIGHT + n)}${'0'.repeat(16)}`, {
    idempotency: { key: 'k', bodyHash: 'hash', answer: 'sealed' },
  });

/** Claims in memory. Each request is answered by one of the servers, whose clocks differ. */
class MemoryClaims {
  readonly days = new Map<number, { messageId: string; createdAtMs: number }>();
  readonly #schedule: RandomSchedule;
  readonly #serverMs: () => number;

  constructor(schedule: RandomSchedule, serverMs: () => number) {
    this.#schedule = schedule;
    this.#serverMs = serverMs;
  }

  /** Runs at once, some time after the request and before the response. */
  async #answer<Answer>(run: (serverMs: number) => Answer): Promise<Answer> {
    await this.#schedule.turn();
    const answer = run(this.#serverMs());
    await this.#schedule.turn();
    return answer;
  }

  readonly databaseMs = (): Promise<number> => this.#answer((serverMs) => serverMs);

  readonly claims: KeyClaims = {
    write: ({ day, fromMs, beforeMs }, keyed) =>
      this.#answer((createdAtMs) => {
        if (createdAtMs < fromMs || createdAtMs >= beforeMs) return null;
        const taken = keyed.filter(({ id: messageId }) => {
          const found = this.days.get(day);
          if (!found) this.days.set(day, { messageId, createdAtMs });
          return found !== undefined && found.messageId !== messageId;
        });
        return new Set(taken);
      }),
    takenIn: (day, keyed) =>
      this.#answer((serverMs) => {
        const found = this.days.get(day);
        if (!found || serverMs - found.createdAtMs >= KEPT_MS) return [];
        return keyed.filter(({ id }) => id !== found.messageId);
      }),
    remove: (day, keyed) =>
      this.#answer(() => {
        const ids = keyed.map(({ id }) => id);
        if (ids.includes(this.days.get(day)?.messageId ?? '')) this.days.delete(day);
      }),
  };
}

/** Two to four gateways claim one key for a message each, around midnight. Returns the messages that have it. */
async function claimAtOnce(seed: number): Promise<{ winners: number; repeat: unknown }> {
  const random = createRandom(seed);
  const between = (low: number, high: number): number => low + random() * (high - low);
  const schedule = createRandomSchedule(random);
  schedule.nowMs = MIDNIGHT + between(-10_000, 5_000);
  const skewsMs = [0, between(-20_000, 20_000)];
  const serverMs = (): number => schedule.nowMs + (skewsMs[Math.floor(random() * 2)] ?? 0);
  const memory = new MemoryClaims(schedule, serverMs);
  const gateway = (isKnown: boolean) => {
    // Half of the gateways have read the clock before, and most of those are wrong by now.
    const first = isKnown ? MIDNIGHT + between(-DAY_MS, DAY_MS) : null;
    const readings = first === null ? [] : [first];
    return createClaim({
      claims: memory.claims,
      databaseMs: () => {
        const known = readings.pop();
        return known === undefined ? memory.databaseMs() : Promise.resolve(known);
      },
      monotonicMs: () => schedule.nowMs,
    });
  };
  const messages = Array.from({ length: 2 + Math.floor(random() * 3) }, (_, n) => keyed(n));
  const claimed = Promise.all(
    messages.map(async (message) => {
      const taken = await gateway(random() < 0.5)([message]);
      return taken?.size === 0;
    }),
  );
  await schedule.runAll();
  const winners = (await claimed).filter(Boolean).length;
  schedule.nowMs = MIDNIGHT + between(MINUTE_MS, 23 * HOUR_MS);
  const repeat = gateway(false)([keyed(99)]);
  await schedule.runAll();
  return { winners, repeat: (await repeat)?.size };
}

test('two messages never get one key, however claims around midnight interleave', async () => {
  let won = 0;
  for (let seed = 1; seed <= 2_000; seed += 1) {
    const { winners, repeat } = await claimAtOnce(seed);
    if (winners > 1) throw new Error(`seed ${seed}: ${winners} messages have the key`);
    // A key that no message got is free afterwards, and one that a message got is not.
    expect([seed, repeat]).toEqual([seed, winners]);
    won += winners;
  }
  // Nearly always one of them gets it: two that find each other both give up.
  expect(won).toBeGreaterThan(1_500);
});

test('claims before the last hour of a day search one other day, and later ones both', () => {
  const [day, next] = [20_000, 20_001];
  const endMs = MIDNIGHT + DAY_MS;
  const quiet = { day, fromMs: MIDNIGHT, beforeMs: endMs - HOUR_MS, others: [day - 1] };
  expect(claimSpanAt(MIDNIGHT)).toEqual(quiet);
  expect(claimSpanAt(endMs - HOUR_MS - 1)).toEqual(quiet);
  const late = { day, fromMs: MIDNIGHT, beforeMs: endMs, others: [day - 1, next] };
  expect(claimSpanAt(endMs - HOUR_MS)).toEqual(late);
  expect(claimSpanAt(endMs - 1)).toEqual(late);
  expect(claimSpanAt(endMs)).toMatchObject({ day: next, others: [day] });
});
