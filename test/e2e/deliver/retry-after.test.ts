import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../support/time/eventually.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import { killHard, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { metricOf, sendMany, untilDelivered } from '../../support/process/traffic.ts';

const PAUSE_SECONDS = 6;
const MESSAGES = 40;

interface ShownHealth {
  heldUntil: string | null;
}

describe('An endpoint that asks for a pause', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;
  let webhookId: string;

  beforeAll(async () => {
    posthorn = await startPosthorn({ RETRY_DELAYS: '500ms,500ms,500ms' });
    receiver = await startReceiver();
    ({ webhookId } = await posthorn.api.createTarget(receiver.url));
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  const heldUntilMs = async (): Promise<number | null> => {
    const health = await posthorn.api.get(`/api/v1/webhooks/${webhookId}/health`);
    const { heldUntil } = dataOf<ShownHealth>(health);
    return heldUntil === null ? null : Date.parse(heldUntil);
  };

  it('gets nothing until the pause is over, also from the dispatcher that replaces a killed one', async () => {
    const { api } = posthorn;
    receiver.answerWith((response) => {
      response.writeHead(429, { 'retry-after': String(PAUSE_SECONDS) }).end();
    });
    const refused = await sendMany(api, [webhookId], 1);
    const untilMs = await eventually('the pause is shown', heldUntilMs);
    const [first] = receiver.received;
    expect(untilMs - Number(first?.atMs)).toBeGreaterThanOrEqual(PAUSE_SECONDS * 1_000 - 100);

    receiver.answerWith((response) => response.writeHead(200).end());
    const during = await sendMany(api, [webhookId], MESSAGES);
    await eventually('they wait in memory', async () => {
      return (await metricOf(posthorn.dispatcher, 'posthorn_deliveries_waiting')) >= MESSAGES;
    });
    await killHard(posthorn.dispatcher);
    await posthorn.start('dispatcher');

    const deliveries = await untilDelivered(api, [...refused, ...during], 45_000);
    expect(receiver.received[0]).toBe(first);
    const later = receiver.received.slice(1).map(({ atMs }) => atMs);
    expect(later).toHaveLength(MESSAGES + 1);
    // The pause counts from the response, which the endpoint wrote just after it got the request.
    expect(Math.min(...later) - Number(first?.atMs)).toBeGreaterThanOrEqual(PAUSE_SECONDS * 1_000);
    // The pause used up no attempt: one for each message, and a second one for the refused message.
    expect(deliveries.map(({ attemptCount }) => attemptCount).sort()).toEqual([
      ...during.map(() => 1),
      2,
    ]);
  }, 120_000);
});
