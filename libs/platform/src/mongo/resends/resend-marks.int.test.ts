import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Attempt, DeliveryStatus } from '@posthorn/domain/delivery.ts';
import { sampleResend } from '../../../../../test/support/memory/memory-resends.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { toAttemptDocument } from '../deliveries/delivery-documents.ts';
import type { DeliveryDocument } from '../documents.ts';
import { createResendMarks, type ResendMarks } from './resend-marks.ts';

const ID = 'dlv_1';

let database: ScratchDatabase;
let marks: ResendMarks;

beforeAll(async () => {
  database = await openScratchDatabase();
  marks = createResendMarks(database.db);
});

beforeEach(async () => {
  await deliveries().deleteMany({});
});

afterAll(() => database.drop());

const deliveries = () => collection(database.db, 'deliveries');
const stored = (_id = ID) => deliveries().findOne({ _id });

async function store(
  status: DeliveryStatus,
  overrides: Partial<DeliveryDocument> = {},
): Promise<void> {
  await deliveries().insertOne({
    _id: ID,
    messageId: 'msg_1',
    webhookId: 'wh_1',
    companyId: 'comp_a',
    appId: 'app_1',
    status,
    reason: null,
    attemptCount: 7,
    attempts: [],
    nextAttemptAt: null,
    createdAt: new Date(1),
    updatedAt: new Date(2),
    ...overrides,
  });
}

/** Of everything that failed in a span. */
const span = (id = 'rsnd_1', page = [ID]) => sampleResend(id, { page });
const single = (id = 'rsnd_1') => sampleResend(id, { page: [ID], afterId: ID, beforeId: ID });

function made(number: number, outcome: Attempt['outcome']): Attempt {
  return {
    id: `att_${number}`,
    number,
    trigger: 'resend',
    outcome,
    statusCode: null,
    response: null,
    responseHeaders: [],
    startedAtMs: 3,
    durationMs: 1,
  };
}

const finish = (outcome: Attempt['outcome'] | null, attemptNumber = 8) =>
  marks.finish([
    {
      deliveryId: ID,
      attemptNumber,
      atMs: 9,
      attempt: outcome && made(attemptNumber, outcome),
    },
  ]);

describe('asking for one more attempt', () => {
  it.each<[string, boolean, DeliveryStatus[]]>([
    ['a span', false, ['exhausted', 'cancelled']],
    ['one delivery', true, ['exhausted', 'cancelled', 'delivered']],
  ])('marks what %s means', async (_what, isSingle, wanted) => {
    for (const status of ['pending', 'delivered', 'exhausted', 'cancelled'] as const) {
      await deliveries().deleteMany({});
      await store(status);
      await marks.ask(isSingle ? single() : span());
      const mark = { resendId: 'rsnd_1', attemptNumber: 8, state: 'asked' };
      expect((await stored())?.resend).toEqual(wanted.includes(status) ? mark : undefined);
    }
  });

  it('changes nothing when it is repeated, also behind the attempt', async () => {
    await store('exhausted');
    await marks.ask(span());
    const asked = await stored();
    await marks.ask(span());
    expect(await stored()).toEqual(asked);
    await finish('http_5xx');
    const settled = await stored();
    await marks.ask(span());
    expect(await stored()).toEqual(settled);
  });

  it('is granted to one of two resends at once; the other may ask again behind it', async () => {
    await store('exhausted');
    const both = ['rsnd_1', 'rsnd_2'];
    await Promise.all(both.map((id) => marks.ask(span(id))));
    const winner = (await stored())?.resend?.resendId;
    const loser = both.find((id) => id !== winner);
    await finish('http_5xx');
    await marks.ask(span(loser));
    expect((await stored())?.resend).toEqual({
      resendId: loser,
      attemptNumber: 9,
      state: 'asked',
    });
  });

  it('leaves alone what another resend has delivered meanwhile', async () => {
    await store('exhausted');
    await marks.ask(span('rsnd_1'));
    await finish('success');
    await marks.ask(span('rsnd_2'));
    expect((await stored())?.resend).toMatchObject({ resendId: 'rsnd_1', state: 'succeeded' });
  });

  it('reaches no delivery of another company and none beside the page', async () => {
    await store('exhausted', { companyId: 'comp_b' });
    await store('exhausted', { _id: 'dlv_2' });
    await marks.ask(span());
    expect((await stored())?.resend).toBeUndefined();
    expect((await stored('dlv_2'))?.resend).toBeUndefined();
    expect(await marks.read('comp_a', [ID, 'dlv_2'])).toMatchObject([{ id: 'dlv_2' }]);
  });

  it('is read with all that a record needs', async () => {
    await store('exhausted');
    const known = {
      id: ID,
      messageId: 'msg_1',
      webhookId: 'wh_1',
      companyId: 'comp_a',
      appId: 'app_1',
      createdAtMs: 1,
      status: 'exhausted',
    };
    expect(await marks.read('comp_a', [ID, 'dlv_none'])).toEqual([{ ...known, mark: null }]);
    await marks.ask(span());
    const mark = { resendId: 'rsnd_1', attemptNumber: 8, state: 'asked' };
    expect(await marks.read('comp_a', [ID])).toEqual([{ ...known, mark }]);
    expect(await marks.askedNumbers([ID, 'dlv_none'])).toEqual(new Map([[ID, 8]]));
  });
});

describe('the attempt that was asked for', () => {
  beforeEach(async () => {
    await store('cancelled', { reason: 'webhook_disabled' });
    await marks.ask(span());
  });

  it('makes the delivery delivered when it succeeds', async () => {
    await finish('success');
    expect(await stored()).toMatchObject({
      status: 'delivered',
      reason: null,
      attemptCount: 8,
      updatedAt: new Date(9),
      attempts: [{ number: 8, trigger: 'resend', outcome: 'success', startedAt: new Date(3) }],
      resend: { state: 'succeeded' },
    });
    expect(await marks.askedNumbers([ID])).toEqual(new Map());
  });

  it('leaves its status and reason when it fails', async () => {
    await finish('timeout');
    expect(await stored()).toMatchObject({
      status: 'cancelled',
      reason: 'webhook_disabled',
      attemptCount: 8,
      attempts: [{ number: 8, outcome: 'timeout' }],
      resend: { state: 'failed' },
    });
  });

  it('that could not be made is a failure without an attempt', async () => {
    await finish(null);
    expect(await stored()).toMatchObject({
      status: 'cancelled',
      attemptCount: 7,
      attempts: [],
      resend: { state: 'failed' },
    });
  });

  it('is recorded once, whatever comes second', async () => {
    await finish('success');
    const first = await stored();
    for (const outcome of ['success', 'timeout', null] as const) await finish(outcome);
    expect(await stored()).toEqual(first);
  });

  it('is not recorded under another number', async () => {
    const asked = await stored();
    await finish('success', 7);
    await finish('success', 9);
    expect(await stored()).toEqual(asked);
  });

  it('is kept with the newest two hundred; older ones are dropped', async () => {
    const attempts = Array.from({ length: 200 }, (_, n) =>
      toAttemptDocument(made(n + 1, 'timeout')),
    );
    await deliveries().updateOne(
      { _id: ID },
      { $set: { attempts, attemptCount: 200, 'resend.attemptNumber': 201 } },
    );
    await finish('success', 201);
    const found = await stored();
    expect([found?.attempts.length, found?.attemptCount]).toEqual([200, 201]);
    expect([found?.attempts[0]?.number, found?.attempts.at(-1)?.number]).toEqual([2, 201]);
  });
});
