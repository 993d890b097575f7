import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { eventually } from '../../support/time/eventually.ts';
import { createCompany } from '../../support/process/companies.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { metricOf, sendMany, untilDelivered } from '../../support/process/traffic.ts';

/** No company may have so many unread records while nothing is read (publish-budget.ts). */
const SENT = 700;

describe('A company whose records are not read as fast as it sends messages', () => {
  let posthorn: Posthorn;
  let endpoint: BusyEndpoint;

  beforeAll(async () => {
    [posthorn, endpoint] = await Promise.all([startPosthorn(), startBusyEndpoint()]);
  }, 120_000);

  afterAll(async () => {
    posthorn.dispatcher.signal('SIGCONT');
    await endpoint.close();
    await posthorn.stop();
  }, 60_000);

  it('waits in the gateway, another one does not, and everything is delivered once', async () => {
    const { api, dispatcher, gateway } = posthorn;
    const other = await createCompany(posthorn, 'Other');
    const { webhookId } = await api.createTarget(endpoint.url);
    const { webhookId: ofOther } = await other.api.createTarget(endpoint.url);
    await untilDelivered(api, await sendMany(api, [webhookId], 1));

    dispatcher.signal('SIGSTOP');
    const sent = await sendMany(api, [webhookId], SENT);
    await eventually('the company waits', async () => {
      return (await metricOf(gateway, 'posthorn_publish_waiting_companies')) === 1;
    });
    const unpublished = () => metricOf(gateway, 'posthorn_unpublished_messages');
    const waiting = await unpublished();
    const sentByOther = await sendMany(other.api, [ofOther], 10);
    await eventually('the other one does not', async () => (await unpublished()) <= waiting);
    expect(await unpublished()).toBeGreaterThan(0);
    dispatcher.signal('SIGCONT');

    await untilDelivered(other.api, sentByOther, 60_000);
    await untilDelivered(api, sent, 60_000);
    expect(await metricOf(gateway, 'posthorn_publish_waiting_companies')).toBe(0);
    for (const { messageId } of [...sent, ...sentByOther])
      expect(endpoint.successes.get(messageId)).toBe(1);
  }, 240_000);
});
