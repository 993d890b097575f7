import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import fc from 'fast-check';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { Publication } from './publication.ts';

/** `message>webhook` of each record, by batch. */
let sends: string[][];
let stored: Message[];
/** How many more records each company may publish; without an entry, all. */
let rooms: Map<string, number>;
/** Resolves when Kafka has acknowledged a batch. */
let sent: () => Promise<void>;
let nowMs: number;
let publication: Publication;

const idOf = (number: number): string => `msg_${String(number).padStart(6, '0')}`;
const roomOf = (companyId: string): number => rooms.get(companyId) ?? Infinity;

function open(publishQueueBytes: number): void {
  publication = new Publication({
    topic: 'created',
    publisherId: 'gw_1',
    publishQueueBytes,
    budget: {
      roomOf,
      noteWritten(companyId, webhookIds) {
        rooms.set(companyId, roomOf(companyId) - webhookIds.length);
      },
    },
    firstWatermark: '',
    assertOwner: () => undefined,
    logger: createLogger('test', 'silent'),
    nowMs: () => nowMs,
    monotonicMs: () => 0,
    records: {
      publish(records) {
        sends.push(records.map(nameOf));
        return sent();
      },
    },
    messages: {
      pageOf: ({ afterId, limit }) =>
        Promise.resolve(stored.filter(({ id }) => id > afterId).slice(0, limit)),
    },
  });
}

function nameOf({ key, value }: OutgoingRecord): string {
  const [id = ''] = /msg_\d+/.exec(value.toString()) ?? [];
  return `${id}>${key}`;
}

function accept(companyId: string, targetCount: number, count = 1): void {
  const batch = Array.from({ length: count }, (_, index) => {
    const targets = Array.from({ length: targetCount }, (_target, n) => `wh_${n}`);
    return sampleMessage(idOf(stored.length + index + 1), { companyId, targets, createdAtMs: 500 });
  });
  stored.push(...batch);
  publication.add(batch);
}

function give(companyId: string, room: number): void {
  rooms.set(companyId, room);
  publication.releaseWaiting();
}

const settled = () => publication.close(60_000);
const recordsOf = (messages: readonly Message[]) =>
  messages.flatMap(({ id, targets }) => targets.map((webhookId) => `${id}>${webhookId}`));

beforeEach(() => {
  [sends, stored, rooms, nowMs] = [[], [], new Map<string, number>(), 1_000];
  sent = () => Promise.resolve();
  open(16_777_216);
});

describe('a company that has used up its budget', () => {
  test('waits, and other companies publish', async () => {
    rooms.set('comp_a', 30);
    accept('comp_a', 10_000);
    accept('comp_b', 3);
    await settled();
    expect(sends.flat().filter((record) => record.startsWith(idOf(1)))).toHaveLength(30);
    expect(sends.flat()).toEqual(expect.arrayContaining(recordsOf(stored.slice(1))));
    expect(publication.state()).toMatchObject({ watermark: '', unpublished: 1 });
    expect(publication.state().waitingCompanies).toBe(1);
  });

  test('goes on where it was when it has room again, in its order', async () => {
    rooms.set('comp_a', 1);
    accept('comp_a', 2, 3);
    await settled();
    give('comp_a', 2);
    accept('comp_a', 1);
    await settled();
    expect(sends.flat()).toEqual(recordsOf(stored).slice(0, 3));
    give('comp_a', Infinity);
    await settled();
    expect(sends.flat()).toEqual(recordsOf(stored));
    expect(publication.state()).toMatchObject({ watermark: idOf(4), unpublished: 0 });
    expect(publication.state().waitingCompanies).toBe(0);
  });

  test('holds its share of the memory while it waits, and the rest is read back in order', async () => {
    open(200_000);
    rooms.set('comp_a', 0);
    accept('comp_a', 10, 300);
    accept('comp_b', 1, 5);
    await settled();
    expect(publication.usedBytes()).toBeLessThan(200_000);
    expect(sends.flat().sort()).toEqual(recordsOf(stored.slice(300)));
    for (let room = 0; room < 3_000; room += 700) {
      give('comp_a', 700);
      await settled();
    }
    const ofA = sends.flat().filter((record) => record <= idOf(301));
    expect(ofA).toEqual(recordsOf(stored.slice(0, 300)));
    expect(publication.state()).toMatchObject({ watermark: idOf(305), unpublished: 0 });
  });

  test('does not make its gateway stuck, as a Kafka does that answers nothing', async () => {
    rooms.set('comp_a', 0);
    accept('comp_a', 1);
    await settled();
    nowMs += 600_000;
    expect([publication.state().behindMs, publication.state().stuckMs]).toEqual([
      nowMs - 500,
      null,
    ]);
    let acknowledge = (): void => undefined;
    sent = () => new Promise((resolve) => (acknowledge = resolve));
    accept('comp_b', 1);
    nowMs += 61_000;
    expect(publication.state().stuckMs).toBe(61_000);
    acknowledge();
    await settled();
    expect(publication.state().stuckMs).toBeNull();
  });
});

describe('the watermark', () => {
  const steps = fc.array(
    fc.record({
      companyId: fc.constantFrom('comp_a', 'comp_b', 'comp_c'),
      targets: fc.nat(60),
      count: fc.integer({ min: 0, max: 5 }),
      room: fc.nat(100),
    }),
    { maxLength: 12 },
  );

  function passedTooSoon(): string[] {
    const had = new Set(sends.flat());
    const passed = stored.filter(({ id }) => id <= publication.state().watermark);
    return recordsOf(passed).filter((record) => !had.has(record));
  }

  test('never passes a message of a company that waits, and ends at the last one', async () => {
    const queueBytes = fc.constantFrom(10_000, 100_000, 4_000_000);
    await fc.assert(
      fc.asyncProperty(steps, queueBytes, async (given, publishQueueBytes) => {
        [sends, stored, rooms] = [[], [], new Map<string, number>()];
        open(publishQueueBytes);
        for (const { companyId, targets, count, room } of given) {
          give(companyId, room);
          accept(companyId, targets, count);
          await settled();
          expect(passedTooSoon()).toEqual([]);
        }
        for (const companyId of ['comp_a', 'comp_b', 'comp_c']) give(companyId, Infinity);
        await settled();
        expect(publication.state()).toMatchObject({ unpublished: 0, behindMs: null });
        expect(publication.state().watermark).toBe(stored.at(-1)?.id ?? '');
        expect([...sends.flat()].sort()).toEqual(recordsOf(stored).sort());
      }),
      { numRuns: 50 },
    );
  });
});
