import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message/message.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createPublication, type Publication } from './publish-created.ts';
import { createPublishPace, PIECE_RECORDS } from './publish-pace.ts';

/** The webhooks of each batch that Kafka has got. */
let sends: string[][];
let timers: { ms: number; run: () => void }[];
/** How long a company rests after a millisecond of work. */
let restPerMs: Record<string, number>;
let nowMs: number;
let publication: Publication;
/** What the store has, for messages that are read back. */
let stored: Message[];
/** Resolves when Kafka has acknowledged a batch. */
let sent: () => Promise<void>;

const send = (number: number, companyId: string, targetCount: number): void => {
  const message: Message = {
    id: `msg_${number}`,
    companyId,
    appId: null,
    payload: '{}',
    targets: Array.from({ length: targetCount }, (_, index) => `wh_${number}_${index}`),
    disabledTargets: new Set<string>(),
    publisherId: 'gw_1',
    requestId: 'request-1',
    eventType: null,
    idempotency: null,
    createdAtMs: 0,
  };
  stored.push(message);
  publication.add([message]);
};
const sizes = (): number[] => sends.map(({ length }) => length);
const passTimer = (): number => {
  const timer = timers.shift();
  timer?.run();
  return timer?.ms ?? -1;
};

beforeEach(() => {
  [sends, timers, restPerMs, nowMs, sent] = [[], [], {}, 0, () => Promise.resolve()];
  stored = [];
  open(16_777_216);
});

function open(publishQueueBytes: number): void {
  publication = createPublication({
    topic: 'created',
    publisherId: 'gw_1',
    publishQueueBytes,
    pace: createPublishPace({
      pauseMs: (companyId, workMs) => workMs * (restPerMs[companyId] ?? 0),
      after: (ms, run) => void timers.push({ ms, run }),
    }),
    firstWatermark: '',
    assertOwner: () => undefined,
    logger: createLogger('test', 'silent'),
    nowMs: () => nowMs,
    monotonicMs: () => 0,
    records: {
      publish(records) {
        sends.push(records.map(({ key }) => key));
        return sent();
      },
    },
    messages: {
      pageOf: ({ afterId, limit }) =>
        Promise.resolve(stored.filter(({ id }) => id > afterId).slice(0, limit)),
    },
  });
}

describe('a message to many webhooks', () => {
  test('fills each batch while its company is within its share', async () => {
    send(1, 'comp_a', 1_000);
    await eventually('both batches', () => sends.length === 2);
    expect([sizes(), timers]).toEqual([[500, 500], []]);
  });

  test('rests after each 100 records beyond it, and the watermark waits for the last ones', async () => {
    restPerMs = { comp_a: 16 };
    send(1, 'comp_a', 250);
    await eventually('the first rest', () => timers.length === 1);
    expect([sizes(), publication.state()]).toEqual([
      [PIECE_RECORDS],
      { watermark: '', unpublished: 1, behindMs: 0, stuckMs: null, waitingCompanies: 0 },
    ]);
    expect(passTimer()).toBe(40);
    await eventually('the second rest', () => timers.length === 1);
    passTimer();
    await eventually('the end', () => publication.state().unpublished === 0);
    expect([sizes(), publication.state().watermark]).toEqual([[100, 100, 50], 'msg_1']);
    expect(new Set(sends.flat()).size).toBe(250);
  });

  test('stops no other message while it rests, of its company or of others', async () => {
    restPerMs = { comp_a: 16 };
    send(1, 'comp_a', 200);
    await eventually('the rest', () => timers.length === 1);
    send(2, 'comp_a', 1);
    send(3, 'comp_b', 1);
    await eventually('both', () => sends.flat().length === 102);
    expect(sends.slice(1).flat()).toEqual(['wh_2_0', 'wh_3_0']);
    expect(publication.state().watermark).toBe('');
  });

  test('goes on after another one of its company has rested, not beside it', async () => {
    restPerMs = { comp_a: 8 };
    send(1, 'comp_a', 300);
    send(2, 'comp_a', 300);
    await eventually('the rests', () => sends.flat().length === 200);
    const before = sends.length;
    for (let left = 400; left > 0; left -= 100) {
      expect(timers).toHaveLength(1);
      expect(passTimer()).toBe(20);
      await eventually('the next part', () => sends.flat().length === 600 - left + 100);
    }
    expect(sizes().slice(before)).toEqual([100, 100, 100, 100]);
    expect(publication.state()).toMatchObject({ watermark: 'msg_2', unpublished: 0 });
  });

  test('rests however long it has waited', async () => {
    restPerMs = { comp_a: 16 };
    send(1, 'comp_a', 300);
    await eventually('the rest', () => timers.length === 1);
    nowMs = 600_000;
    expect(passTimer()).toBe(40);
    await eventually('the next rest', () => timers.length === 1);
    expect(sizes()).toEqual([100, 100]);
  });

  test('rests no more once the gateway stops', async () => {
    restPerMs = { comp_a: 16 };
    send(1, 'comp_a', 1_000);
    await eventually('the rest', () => timers.length === 1);
    await publication.close(5_000);
    expect([sizes(), publication.state().unpublished]).toEqual([[100, 500, 400], 0]);
    expect(passTimer()).toBe(40);
    expect(sends.flat()).toHaveLength(1_000);
  });

  test('does not rest either when a part of it is under way as the gateway stops', async () => {
    restPerMs = { comp_a: 16 };
    let acknowledge = (): void => undefined;
    sent = () => new Promise((resolve) => (acknowledge = resolve));
    send(1, 'comp_a', 200);
    const closed = publication.close(5_000);
    acknowledge();
    sent = () => Promise.resolve();
    await closed;
    expect([sizes(), publication.state().unpublished, timers]).toEqual([[100, 100], 0, []]);
  });

  test('is published, and so are later ones, when the next one overflows while all others rest', async () => {
    open(200_000);
    restPerMs = { comp_a: 16 };
    for (let number = 1; number <= 4; number += 1) send(number, 'comp_a', 1_000);
    await eventually('the rest', () => timers.length === 1 && publication.state().unpublished > 0);
    send(5, 'comp_a', 1_000);
    send(6, 'comp_b', 1);
    await eventually('the end', () => {
      passTimer();
      return publication.state().unpublished === 0;
    });
    expect(new Set(sends.flat()).size).toBe(5_001);
    expect(publication.state().watermark).toBe('msg_6');
  });

  test('is left to the sweep when its gateway has lost it while it rested', async () => {
    restPerMs = { comp_a: 16 };
    send(1, 'comp_a', 1_000);
    await eventually('the rest', () => timers.length === 1);
    publication.abandon();
    passTimer();
    await publication.close(0);
    expect(sizes()).toEqual([100]);
  });
});
