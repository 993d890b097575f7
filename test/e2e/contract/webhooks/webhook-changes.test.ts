import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { freePorts } from '../../../../tools/local-stack/machine/ports.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../../support/receivers/busy-endpoint.ts';
import { eventually } from '../../../support/time/eventually.ts';
import { dataOf } from '../../../support/api/expect-answers.ts';
import { startPosthorn, type OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';
import { untilDelivered } from '../../../support/process/traffic.ts';

async function startWithoutRedis(): Promise<OwnCompany> {
  const [port = 0] = await freePorts(1);
  return startPosthorn({ REDIS_URL: `rediss://127.0.0.1:${port}` });
}

describe.each([
  ['with Redis', false],
  ['without Redis', true],
])('A changed webhook, %s', (_, isAway) => {
  let posthorn: OwnCompany;
  let before: BusyEndpoint;
  let after: BusyEndpoint;

  beforeEach(async () => {
    posthorn = isAway ? await startWithoutRedis() : await joinShared('contract');
    [before, after] = await Promise.all([startBusyEndpoint(), startBusyEndpoint()]);
  }, 120_000);

  afterEach(async () => {
    await Promise.all([before.close(), after.close()]);
    await posthorn.stop();
  }, 60_000);

  it('gets nothing more at its old URL, and nothing at all after it is disabled', async () => {
    const { api } = posthorn;
    const { webhookId } = await api.createTarget(before.url);
    await untilDelivered(api, [await api.send({ webhookId }, {})]);
    dataOf(await api.put(`/webhooks/${webhookId}`, { url: after.url }));
    await eventually('a message at the new address', async () => {
      const sent = await api.send({ webhookId }, {});
      await untilDelivered(api, [sent]);
      return after.requests.has(sent.messageId);
    });
    const atOldAddress = before.total();
    const sent = await Promise.all(Array.from({ length: 20 }, () => api.send({ webhookId }, {})));
    await untilDelivered(api, sent);
    expect(before.total()).toBe(atOldAddress);

    dataOf(await api.put(`/webhooks/${webhookId}`, { disabled: true }));
    const atNewAddress = after.total();
    const { deliveryId } = await api.send({ webhookId }, {});
    await eventually('a cancelled delivery', async () => {
      const { body } = await api.get(`/api/v1/deliveries/${deliveryId}`);
      return (body.data as { status: string }).status === 'cancelled';
    });
    expect(after.total()).toBe(atNewAddress);
  });
});
