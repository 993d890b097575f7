import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { killHard, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import {
  readDeliveries,
  startLoad,
  untilDelivered,
  type Sent,
} from '../../support/process/traffic.ts';

/** Two seconds of the load: what is older was recorded long before. More would not be read in ten seconds. */
const LATEST = 200;

describe('One of two dispatchers that is killed under load', () => {
  let posthorn: Posthorn;
  let endpoints: BusyEndpoint[];

  beforeAll(async () => {
    posthorn = await startPosthorn({ DELIVERY_TIMEOUT_MS: '5000', RETRY_DELAYS: '1s,2s' });
    await posthorn.start('dispatcher');
    endpoints = await Promise.all(Array.from({ length: 10 }, startBusyEndpoint));
  }, 120_000);

  afterAll(async () => {
    await Promise.all(endpoints.map((each) => each.close()));
    await posthorn.stop();
  }, 60_000);

  const requestsOf = ({ messageId }: Sent): number =>
    endpoints.reduce((sum, { requests }) => sum + (requests.get(messageId) ?? 0), 0);

  /** Returns the messages whose delivery has begun and is not recorded. */
  async function unrecorded(sent: Sent[]): Promise<Set<string>> {
    const deliveryIds = sent.map(({ deliveryId }) => deliveryId);
    const shown = await readDeliveries(posthorn.api, deliveryIds);
    const open = shown.filter(({ status }) => status !== 'delivered');
    const openIds = new Set(open.map(({ messageId }) => messageId));
    // Counted after the reads: a request of the killed one may reach the endpoint after the kill.
    const begun = sent.filter((each) => openIds.has(each.messageId) && requestsOf(each) > 0);
    return new Set(begun.map(({ messageId }) => messageId));
  }

  it('is replaced by the other, and only attempts that it had not recorded are repeated', async () => {
    const { api } = posthorn;
    for (const endpoint of endpoints) endpoint.answerWith(200, 30);
    const targets = await Promise.all(endpoints.map(({ url }) => api.createTarget(url)));
    const webhookIds = targets.map(({ webhookId }) => webhookId);
    const load = startLoad(api, webhookIds, 10);
    await load.reaches(500);
    await killHard(posthorn.dispatcher);
    // A fifth of a second of the load: requests that were open at the kill have their response then.
    await load.reaches(load.sent().length + 20);
    const before = load.sent();
    // The other takes over ten seconds after the kill at the earliest, when the session of the killed one ends:
    // what was begun and is not recorded now was running, or had ended and was not recorded.
    const mayComeTwice = await unrecorded(before.slice(-LATEST));
    await Promise.all([untilDelivered(api, before, 30_000), load.reaches(1_500)]);
    const sent = await load.stop();
    await untilDelivered(api, sent, 30_000);

    expect(sent.filter((each) => requestsOf(each) === 0)).toEqual([]);
    const twice = sent.filter((each) => requestsOf(each) > 1).map(({ messageId }) => messageId);
    expect([...mayComeTwice]).toEqual(expect.arrayContaining(twice));
    expect(Math.max(...sent.map(requestsOf))).toBeLessThanOrEqual(2);
  });
});
