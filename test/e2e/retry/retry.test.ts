import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../support/time/eventually.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { readTopic } from '../../support/stores/read-topic.ts';

/** Six delays, as many as the schedule has (docs/contract.md C10.4), in hundredths of a second instead of hours. */
const DELAYS_MS = [200, 250, 300, 350, 400, 450];

interface Shown {
  status: string;
  attempts: { number: number; outcome: string; createdAt: string; updatedAt: string }[];
}

describe('A delivery that fails', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;

  beforeAll(async () => {
    posthorn = await startPosthorn({ RETRY_DELAYS: DELAYS_MS.map((ms) => `${ms}ms`).join() });
    receiver = await startReceiver();
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  async function finished(deliveryId: string): Promise<Shown> {
    return eventually('a final state', async () => {
      const { body } = await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`);
      const shown = body.data as Shown;
      return shown.status === 'pending' ? null : shown;
    });
  }

  it('is retried until it succeeds, here with attempt 3', async () => {
    receiver.answerWith(failing(2));
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    const { deliveryId, messageId } = await posthorn.api.send({ webhookId }, { try: 'again' });
    const { status, attempts } = await finished(deliveryId);
    expect(status).toBe('delivered');
    expect(attempts.map(({ number, outcome }) => [number, outcome])).toEqual([
      [1, 'http_5xx'],
      [2, 'http_5xx'],
      [3, 'success'],
    ]);
    expect(receiver.of(messageId)).toHaveLength(3);
  });

  it('carries the same message id and body each time, with a fresh timestamp and signature', async () => {
    receiver.answerWith(failing(1));
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    const { deliveryId, messageId } = await posthorn.api.send({ webhookId }, { same: 'body' });
    await finished(deliveryId);
    const [first, second] = receiver.of(messageId);
    expect(second?.body).toEqual(first?.body);
    expect(second?.headers['x-service-signature']).toBe(first?.headers['x-service-signature']);
    expect(Number(second?.headers['webhook-timestamp'])).toBeGreaterThanOrEqual(
      Number(first?.headers['webhook-timestamp']),
    );
  });

  it('is exhausted after seven attempts, none of them early, with a dead letter that gives the reason', async () => {
    receiver.answerWith(failing(99, 503));
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    const { deliveryId, messageId } = await posthorn.api.send({ webhookId }, { never: 'mind' });
    const { status, attempts } = await finished(deliveryId);
    expect(status).toBe('exhausted');
    expect(attempts.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    const waitsMs = attempts.slice(1).map(({ createdAt }, index) => {
      return Date.parse(createdAt) - Date.parse(attempts[index]?.updatedAt ?? '');
    });
    waitsMs.forEach((waitMs, index) => {
      expect(waitMs).toBeGreaterThanOrEqual(DELAYS_MS[index] ?? Infinity);
    });
    const letters = await readTopic(posthorn.env, 'dead-letters', (record) =>
      record.value.includes(messageId),
    );
    expect(letters[0]?.headers).toMatchObject({
      reason: 'schedule_exhausted',
      detail: 'attempt 7 ended http_5xx with status 503',
    });
  });

  it('is retried when nothing listens at the URL', async () => {
    const gone = await startReceiver();
    await gone.close();
    const { webhookId } = await posthorn.api.createTarget(gone.url);
    const { deliveryId } = await posthorn.api.send({ webhookId }, {});
    const { attempts } = await finished(deliveryId);
    expect(attempts).toHaveLength(7);
    expect(attempts[0]).toMatchObject({ outcome: 'connect_error', statusCode: null });
  });
});
