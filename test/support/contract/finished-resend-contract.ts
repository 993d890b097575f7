import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Attempt } from '@posthorn/domain/delivery/delivery.ts';
import { toAttemptDocument } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { DeliveryDocument } from '@posthorn/platform/mongo/documents.ts';
import type { ResendMarks } from '@posthorn/platform/mongo/webhooks/resend-marks.ts';

export interface OpenFinishedResends {
  marks: Pick<ResendMarks, 'askedNumbers' | 'finish'>;
  /** Stores a delivery, in place of the one with its id. */
  put: (delivery: DeliveryDocument) => Promise<void>;
  read: (id: string) => Promise<DeliveryDocument | null>;
  close: () => Promise<void>;
}

const ID = 'dlv_1';

const ASKED: DeliveryDocument = {
  _id: ID,
  messageId: 'msg_1',
  webhookId: 'wh_1',
  companyId: 'comp_a',
  appId: 'app_1',
  status: 'cancelled',
  reason: 'webhook_disabled',
  attemptCount: 7,
  attempts: [],
  nextAttemptAt: null,
  createdAt: new Date(),
  updatedAt: new Date(2),
  resend: { resendId: 'rsnd_1', attemptNumber: 8, state: 'asked' },
};

const FREED = { resendId: 'rsnd_1', attemptNumber: 8, state: 'failed' } as const;

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

/** What every ResendMarks does when the attempt that was asked for has ended. */
export function finishedResendContract(open: () => Promise<OpenFinishedResends>): void {
  describe('the attempt that a resend asked for', () => {
    let opened: OpenFinishedResends;

    beforeAll(async () => {
      opened = await open();
    });

    beforeEach(() => opened.put(ASKED));

    afterAll(() => opened.close());

    const finish = (outcome: Attempt['outcome'] | null, attemptNumber = 8) =>
      opened.marks.finish([
        {
          deliveryId: ID,
          attemptNumber,
          atMs: 9,
          attempt: outcome && made(attemptNumber, outcome),
        },
      ]);

    it('is known by its number until it is recorded', async () => {
      expect(await opened.marks.askedNumbers([ID, 'dlv_none'])).toEqual(new Map([[ID, 8]]));
      await finish('success');
      expect(await opened.marks.askedNumbers([ID])).toEqual(new Map());
    });

    it('delivers its delivery when it succeeds', async () => {
      await finish('success');
      expect(await opened.read(ID)).toMatchObject({
        status: 'delivered',
        reason: null,
        attemptCount: 8,
        updatedAt: new Date(9),
        attempts: [{ number: 8, trigger: 'resend', outcome: 'success', startedAt: new Date(3) }],
        resend: { state: 'succeeded' },
      });
    });

    it('leaves status and reason unchanged when it fails', async () => {
      await finish('timeout');
      expect(await opened.read(ID)).toMatchObject({
        status: 'cancelled',
        reason: 'webhook_disabled',
        attemptCount: 8,
        attempts: [{ number: 8, outcome: 'timeout' }],
        resend: { state: 'failed' },
      });
    });

    it('is recorded as a failure without an attempt when it could not be made', async () => {
      await finish(null);
      expect(await opened.read(ID)).toMatchObject({
        status: 'cancelled',
        attemptCount: 7,
        attempts: [],
        resend: { state: 'failed' },
      });
    });

    it('is recorded once, whatever is recorded after it', async () => {
      await finish('success');
      const first = await opened.read(ID);
      for (const outcome of ['success', 'timeout', null] as const) await finish(outcome);
      expect(await opened.read(ID)).toEqual(first);
    });

    it('is recorded too when its mark was freed while it was made', async () => {
      await opened.put({ ...ASKED, resend: FREED });
      await finish('success');
      expect(await opened.read(ID)).toMatchObject({ status: 'delivered', attemptCount: 8 });
    });

    it('is not recorded under another number', async () => {
      await finish('success', 7);
      await finish('success', 9);
      expect(await opened.read(ID)).toEqual(ASKED);
    });

    it('is kept with the 199 attempts before it; older ones are dropped', async () => {
      const attempts = Array.from({ length: 200 }, (_, n) =>
        toAttemptDocument(made(n + 1, 'timeout')),
      );
      const resend = { resendId: 'rsnd_1', attemptNumber: 201, state: 'asked' } as const;
      await opened.put({ ...ASKED, attempts, attemptCount: 200, resend });
      await finish('success', 201);
      const found = await opened.read(ID);
      expect([found?.attempts.length, found?.attemptCount]).toEqual([200, 201]);
      expect([found?.attempts[0]?.number, found?.attempts.at(-1)?.number]).toEqual([2, 201]);
    });
  });
}
