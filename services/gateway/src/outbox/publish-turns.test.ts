import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import fc from 'fast-check';
import { Publication } from './publication.ts';
import { MAX_RECORDS } from './publish-queue.ts';

/** `message>webhook` of each record, by batch. */
let sends: string[][];
let stored: Message[];
/** What Kafka does with the next batches: true to store one. */
let answers: boolean[];
/** Runs when Kafka has stored or refused a batch. */
let afterSend: () => void;
let publication: Publication;

const idOf = (number: number): string => `msg_${String(number).padStart(6, '0')}`;
const recordOf = (messageId: string, webhookId: string): string => `${messageId}>${webhookId}`;

function message(number: number, companyId: string, targetCount: number): Message {
  return {
    id: idOf(number),
    companyId,
    appId: null,
    payload: '{}',
    targets: Array.from({ length: targetCount }, (_, index) => `wh_${index}`),
    disabledTargets: new Set<string>(),
    publisherId: 'gw_1',
    requestId: 'request-1',
    eventType: null,
    idempotency: null,
    createdAtMs: number,
  };
}

function accept(...batch: Message[]): void {
  stored.push(...batch);
  publication.add(batch);
}

function open(publishQueueBytes: number): Publication {
  return new Publication({
    topic: 'created',
    publisherId: 'gw_1',
    publishQueueBytes,
    firstWatermark: '',
    assertOwner: () => undefined,
    logger: createLogger('test', 'silent'),
    nowMs: () => 0,
    monotonicMs: () => 0,
    records: { publish },
    messages: {
      pageOf: ({ afterId, limit }) =>
        Promise.resolve(stored.filter(({ id }) => id > afterId).slice(0, limit)),
    },
  });
}

/** Decoding 10,000 records takes a second. */
function nameOf({ key, value }: OutgoingRecord): string {
  const [id = ''] = /msg_\d+/.exec(value.toString()) ?? [];
  return recordOf(id, key);
}

function publish(records: readonly OutgoingRecord[]): Promise<void> {
  const isTaken = answers.shift() ?? true;
  if (isTaken) sends.push(records.map(nameOf));
  return Promise.resolve().then(() => {
    afterSend();
    if (!isTaken) throw new Error('Kafka is away');
  });
}

beforeEach(() => {
  [sends, stored, answers, afterSend] = [[], [], [], () => undefined];
  publication = open(16_777_216);
});

const recordsOf = (messages: readonly Message[]) =>
  messages.flatMap(({ id, targets }) => targets.map((webhookId) => recordOf(id, webhookId)));

describe('companies that take turns', () => {
  test('do not wait for a message of another company to 10,000 webhooks', async () => {
    accept(message(1, 'comp_a', 10_000));
    accept(message(2, 'comp_b', 1));
    await publication.close(60_000);
    const [, second = []] = sends;
    expect(second.slice(0, 21)).toContain(recordOf(idOf(2), 'wh_0'));
    expect(sends).toHaveLength(21);
    expect(Math.max(...sends.map(({ length }) => length))).toBe(MAX_RECORDS);
  });

  test('fill every batch when they wait alone', async () => {
    accept(message(1, 'comp_a', 1_000));
    await publication.close(60_000);
    expect(sends.map(({ length }) => length)).toEqual([500, 500]);
  });

  test('get equally many records in a batch, however they are spread over messages', async () => {
    accept(message(1, 'comp_c', 1));
    const small = Array.from({ length: 300 }, (_, index) => message(index + 3, 'comp_b', 1));
    accept(message(2, 'comp_a', 2_000), ...small);
    await publication.close(60_000);
    const [, mixed = []] = sends;
    const wide = mixed.filter((record) => record.startsWith(idOf(2)));
    expect([wide.length, mixed.length]).toEqual([260, 500]);
  });

  test('keep publishing while another one exceeds its share and is read back', async () => {
    publication = open(400_000);
    const wide = Array.from({ length: 20 }, (_, index) => message(index + 1, 'comp_a', 500));
    accept(...wide);
    accept(message(21, 'comp_b', 1));
    await publication.close(60_000);
    const own = sends.findIndex((send) => send.includes(recordOf(idOf(21), 'wh_0')));
    expect(own).toBe(1);
    expect([...sends.flat()].sort()).toEqual(recordsOf(stored).sort());
  });
});

describe('the watermark', () => {
  const batches = fc.array(
    fc.array(fc.tuple(fc.constantFrom('comp_a', 'comp_b', 'comp_c'), fc.nat(300)), {
      maxLength: 6,
    }),
    { maxLength: 8 },
  );

  /** Records that Kafka does not have although the watermark is past their message. */
  function passedTooSoon(): string[] {
    const { watermark } = publication.state();
    const had = new Set(sends.flat());
    const passed = stored.filter(({ id }) => id <= watermark);
    return recordsOf(passed).filter((record) => !had.has(record));
  }

  test('never passes a message with an unpublished target, and ends at the last one', async () => {
    // Each failure is waited out for a tenth of a second.
    const tries = fc.constantFrom<boolean[]>([], [], [], [true, false]);
    const queueBytes = fc.constantFrom(10_000, 100_000, 4_000_000);
    await fc.assert(
      fc.asyncProperty(batches, tries, queueBytes, async (given, kafka, publishQueueBytes) => {
        [sends, stored, answers] = [[], [], [...kafka]];
        publication = open(publishQueueBytes);
        const rest = [...given];
        let number = 0;
        const acceptNext = (): void => {
          const batch = rest.shift() ?? [];
          accept(...batch.map(([companyId, count]) => message((number += 1), companyId, count)));
        };
        const missing: string[] = [];
        afterSend = () => {
          missing.push(...passedTooSoon());
          acceptNext();
        };
        while (rest.length > 0) {
          acceptNext();
          await publication.close(60_000);
        }
        expect([...missing, ...passedTooSoon()]).toEqual([]);
        expect(publication.state()).toMatchObject({ unpublished: 0, behindMs: null });
        expect(publication.state().watermark).toBe(stored.at(-1)?.id ?? '');
        expect([...sends.flat()].sort()).toEqual(recordsOf(stored).sort());
      }),
      { numRuns: 50 },
    );
  });
});
