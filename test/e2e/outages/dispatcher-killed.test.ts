import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../support/time/eventually.ts';
import { killHard, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';

const MESSAGES = 200;

describe('A dispatcher that ends under load', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;

  beforeAll(async () => {
    posthorn = await startPosthorn({ RETRY_DELAYS: '1s,1s' });
    receiver = await startReceiver();
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  async function statusesOf(deliveryIds: string[]): Promise<string[]> {
    const answers = await Promise.all(
      deliveryIds.map((id) => posthorn.api.get(`/api/v1/deliveries/${id}`)),
    );
    return answers.map(({ body }) => (body.data as { status: string }).status);
  }

  it('loses none of 200 messages when it is killed during their attempts', async () => {
    // Slow responses, so that many requests are open at the moment of the kill.
    receiver.answerWith((response) => {
      setTimeout(() => response.writeHead(200).end(), 150);
    });
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    const sending = Array.from({ length: MESSAGES }, (_, n) =>
      posthorn.api.send({ webhookId }, { n }),
    );
    await eventually('some deliveries under way', () => receiver.received.length >= 20);
    await killHard(posthorn.dispatcher);
    const sent = await Promise.all(sending);
    const receivedAtKill = receiver.received.length;
    expect(receivedAtKill).toBeLessThan(MESSAGES);

    await posthorn.start('dispatcher');
    const arrived = (): Set<unknown> =>
      new Set(receiver.received.map(({ headers }) => headers['webhook-id']));
    await eventually('every message', () => arrived().size === MESSAGES, 60_000);
    expect(arrived()).toEqual(new Set(sent.map(({ messageId }) => messageId)));

    const ids = sent.map(({ deliveryId }) => deliveryId);
    await eventually('every delivery recorded', async () => {
      const statuses = await statusesOf(ids);
      return statuses.every((status) => status === 'delivered');
    });
    // Only attempts that were open or not recorded at the kill may be repeated.
    const duplicates = receiver.received.length - MESSAGES;
    expect(duplicates).toBeLessThanOrEqual(receivedAtKill);
  });

  it('finishes and records running attempts on SIGTERM, and repeats none', async () => {
    receiver.answerWith((response) => {
      setTimeout(() => response.writeHead(200).end(), 300);
    });
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    const dispatcher = await posthorn.start('dispatcher');
    const before = receiver.received.length;
    const sent = await Promise.all(
      Array.from({ length: 50 }, (_, n) => posthorn.api.send({ webhookId }, { n })),
    );
    await eventually('some under way', () => receiver.received.length > before);
    const { code } = await dispatcher.stop();
    expect(code).toBe(0);
    await eventually('all arrive', () => receiver.received.length >= before + sent.length, 60_000);
    const ids = sent.map(({ deliveryId }) => deliveryId);
    await eventually('all delivered', async () =>
      (await statusesOf(ids)).every((status) => status === 'delivered'),
    );
    expect(receiver.received.length).toBe(before + sent.length);
  });
});
