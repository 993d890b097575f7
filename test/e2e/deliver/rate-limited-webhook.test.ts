import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../support/time/eventually.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';

const PER_SECOND = 2;
/** Enough for 42 s; at most 30 s of attempts wait in memory, and those that are sent first do not wait for the last. */
const MESSAGES = 84;

describe('A webhook with a rate limit of its own', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;

  beforeAll(async () => {
    posthorn = await startPosthorn({ RETRY_DELAYS: '1s' });
    receiver = await startReceiver();
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  it('gets every message in one attempt, also deferred ones, while other webhooks are served', async () => {
    const { api } = posthorn;
    const limited = await api.createTarget(receiver.url, { rateLimitPerSecond: PER_SECOND });
    const { webhookId } = await api.createTarget(receiver.url);
    const sent = await Promise.all(
      Array.from({ length: MESSAGES }, (_, n) => api.send({ webhookId: limited.webhookId }, { n })),
    );
    const other = await api.send({ webhookId }, {});
    await eventually('the neighbour', () => receiver.of(other.messageId).length === 1);
    expect(receiver.received.length).toBeLessThan(MESSAGES);

    await eventually('a counted deferral', async () => {
      const metrics = await (await fetch(`${posthorn.dispatcher.opsUrl}/metrics`)).text();
      return /posthorn_deferrals_total\{.*because="pace".*\} [1-9]/.test(metrics);
    });
    for (const { deliveryId } of sent) {
      await eventually(
        'delivered',
        async () => {
          const { body } = await api.get(`/api/v1/deliveries/${deliveryId}`);
          const { status, attemptCount } = body.data as { status: string; attemptCount: number };
          return status === 'delivered' && attemptCount === 1;
        },
        45_000,
      );
    }
    expect(receiver.received).toHaveLength(MESSAGES + 1);
  }, 90_000);
});
