import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Attempt } from '@posthorn/domain/delivery/delivery.ts';
import {
  settleAttempt,
  type SettledDelivery,
  unattemptedDelivery,
} from '@posthorn/domain/delivery/settlement.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { countingIds, sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createDeliveryStore } from './deliveries.ts';
import { createDeliveryQueries } from './delivery-queries.ts';
import { createMessageStore } from './messages.ts';
import { createRequestedErasures, type RequestedErasures } from './requested-erasures.ts';

const newId = countingIds(Date.now());
const AT_MS = Date.now();
const database = duringTests(openScratchDatabase, ({ drop }) => drop());
/** What is noted is erased again at once. */
let erasures: RequestedErasures;

beforeAll(() => {
  erasures = createRequestedErasures(database.db, 0);
});

beforeEach(() => collection(database.db, 'requestedErasures').deleteMany({}));

const attemptOf = (number: number, outcome: Attempt['outcome']): Attempt => ({
  id: `att_${number}`,
  number,
  trigger: number === 1 ? 'first' : 'retry',
  outcome,
  statusCode: outcome === 'success' ? 200 : 500,
  response: 'echo of the payload',
  responseHeaders: [{ key: 'x-echo', value: 'secret' }],
  startedAtMs: AT_MS,
  durationMs: 1,
});

function settled(message: Message, n: number, attempt: Attempt): SettledDelivery {
  const webhookId = `wh_${n}`;
  const deliveryId = deliveryIdOf(message.id, webhookId);
  const ref = { ...message, messageId: message.id, webhookId, deliveryId };
  return settleAttempt(ref, attempt, null, [5_000]);
}

async function plant(changes: Partial<Message> = {}, outcomes: Attempt['outcome'][] = []) {
  const message = sampleMessage(newId('msg'), { payload: '{"name":"Ada"}', ...changes });
  await createMessageStore(database.db).insertAll([message]);
  await createDeliveryStore(database.db).insertAll(
    outcomes.map((outcome, n) => settled(message, n, attemptOf(1, outcome))),
  );
  return message;
}

async function shown({ companyId, id, targets }: Message) {
  const ids = targets.map((webhookId) => deliveryIdOf(id, webhookId));
  const found = await createDeliveryQueries(database.db).findMany(companyId, ids);
  const byId = new Map(found.map((each) => [each.id, each]));
  return ids.map((each) => byId.get(each));
}

const stored = async (message: Message): Promise<string> => {
  const { days } = database.db;
  const messages = await days.messages.of(message.id).find({ _id: message.id }).toArray();
  const deliveries = await days.deliveries.of(message.id).find({ messageId: message.id }).toArray();
  return JSON.stringify([messages, deliveries]);
};

describe('a message that is erased', () => {
  it('has neither its payload nor a response, and its pending deliveries are cancelled', async () => {
    const targets = ['wh_0', 'wh_1', 'wh_2', 'wh_3'];
    const disabledTargets = new Set(['wh_3']);
    const message = await plant({ targets, disabledTargets }, ['success', 'http_5xx']);
    expect(await erasures.eraseMessage(message.id, { atMs: AT_MS })).toEqual({ isInRecords: true });
    expect(await shown(message)).toMatchObject([
      { status: 'delivered', attempts: [{ response: null, responseHeaders: [] }] },
      { status: 'cancelled', reason: 'payload_erased', nextAttemptAtMs: null, attemptCount: 1 },
      { status: 'cancelled', reason: 'payload_erased', attemptCount: 0 },
      // The message states it.
      undefined,
    ]);
    const text = await stored(message);
    for (const secret of ['Ada', 'echo', 'secret']) expect(text).not.toContain(secret);
  });

  it('is the same after a repeat, which says the same of its records', async () => {
    const message = await plant({ targets: ['wh_0'] }, ['http_5xx']);
    await erasures.eraseMessage(message.id, { atMs: AT_MS });
    const before = await stored(message);
    const again = await erasures.eraseMessage(message.id, { atMs: AT_MS + 5 });
    expect(again).toEqual({ isInRecords: true });
    expect(await stored(message)).toBe(before);
  });

  it.each([
    ['large', { payload: JSON.stringify('x'.repeat(20_000)) }],
    ['of an app that wants it', { erasesPayload: true as const }],
  ])('is not in records of Kafka when it is %s', async (_which, changes) => {
    const message = await plant(changes);
    expect(await erasures.eraseMessage(message.id, { atMs: 1 })).toEqual({ isInRecords: false });
  });

  it('is in records of Kafka for its first targets, however many a replay has added', async () => {
    const targets = Array.from({ length: 32 }, (_, n) => `wh_${n}`);
    const message = await plant({ targets, addedTargets: ['wh_32', 'wh_33'] });
    for (const atMs of [1, 2]) {
      expect(await erasures.eraseMessage(message.id, { atMs })).toEqual({ isInRecords: true });
    }
  });

  it('calls back between the slices of many targets', async () => {
    const targets = Array.from({ length: 501 }, (_, n) => `wh_${n}`);
    let calls = 0;
    const message = await plant({ targets });
    const betweenSlices = () => Promise.resolve(void (calls += 1));
    await erasures.eraseMessage(message.id, { atMs: 1, betweenSlices });
    const reasons = (await shown(message)).map((each) => each?.reason);
    expect([calls, new Set(reasons)]).toEqual([2, new Set(['payload_erased'])]);
  });
});

describe('an attempt that was under way', () => {
  it('is recorded, its response is not shown, and is erased when the note is due', async () => {
    const message = await plant({ targets: ['wh_0'] }, ['http_5xx']);
    await erasures.note(message.id);
    await erasures.eraseMessage(message.id, { atMs: AT_MS });
    const late = settled(message, 0, attemptOf(2, 'success'));
    await createDeliveryStore(database.db).appendToCancelled([late]);
    expect(await shown(message)).toMatchObject([
      { status: 'delivered', attempts: [{ response: null }, { number: 2, response: null }] },
    ]);
    expect(await stored(message)).toContain('echo');
    expect(await erasures.eraseDue()).toBe(1);
    expect(await stored(message)).not.toContain('echo');
    expect(await erasures.eraseDue()).toBe(0);
  });
});

describe('a note', () => {
  it('is enough to have the message erased, when its gateway was killed', async () => {
    const message = await plant({ targets: ['wh_0'] });
    await erasures.note(message.id);
    await erasures.note('msg_00000000000000000000000000');
    expect((await erasures.listNoted(9)).sort()).toEqual(
      ['msg_00000000000000000000000000', message.id].sort(),
    );
    expect(await erasures.listNoted(1)).toHaveLength(1);
    expect(await erasures.eraseDue()).toBe(2);
    expect(await stored(message)).not.toContain('Ada');
    expect(await shown(message)).toMatchObject([{ reason: 'payload_erased' }]);
    expect(await erasures.listNoted(9)).toEqual([]);
  });

  it('is enough for the deliveries that a replay has added', async () => {
    const message = await plant({ targets: ['wh_0'], addedTargets: ['wh_1', 'wh_2'] }, [
      'success',
      'http_5xx',
    ]);
    await erasures.note(message.id);
    expect(await erasures.eraseDue()).toBe(1);
    expect(await stored(message)).not.toContain('echo');
    const targets = ['wh_0', 'wh_1', 'wh_2'];
    expect(await shown({ ...message, targets })).toMatchObject([
      { status: 'delivered', attempts: [{ response: null }] },
      { status: 'cancelled', reason: 'payload_erased', attempts: [{ response: null }] },
      { status: 'cancelled', reason: 'payload_erased', attempts: [] },
    ]);
  });

  it('is not due before its time', async () => {
    const later = createRequestedErasures(database.db);
    await later.note('msg_1');
    expect([await later.eraseDue(), await later.listNoted(9)]).toEqual([0, ['msg_1']]);
  });
});

it('the responses of a delivery are erased, and a later attempt stores its own', async () => {
  const message = await plant({ targets: ['wh_0'] }, ['http_5xx']);
  await erasures.eraseResponses([deliveryIdOf(message.id, 'wh_0')]);
  expect(await stored(message)).not.toContain('echo');
  await createDeliveryStore(database.db).appendAttempts([
    settled(message, 0, attemptOf(2, 'success')),
  ]);
  expect(await shown(message)).toMatchObject([
    { attempts: [{ response: null, statusCode: 500 }, { response: 'echo of the payload' }] },
  ]);
  const unattempted = unattemptedDelivery(message, 'wh_1', 1);
  await erasures.eraseResponses([unattempted.id]);
});
