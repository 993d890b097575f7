import { eventually } from '../time/eventually.ts';
import type { ApiClient } from './api-client.ts';
import { dataOf } from './expect-answers.ts';
import { createResources } from './resources.ts';

/** An ordering key, and the exhausted delivery at which it is blocked. */
export interface BlockedKey {
  webhookId: string;
  orderingKey: string;
  deliveryId: string;
}

/** Blocks an ordering key by the first attempt at a new webhook of the app, whose endpoint at the URL fails. */
export async function blockKey(
  api: ApiClient,
  appId: string,
  url: string,
  fields: object = {},
): Promise<BlockedKey> {
  const make = createResources(api);
  const webhook = { appId, url, ordering: 'block', maxAttempts: 1, ...fields };
  const { id: webhookId } = await make.webhook(webhook);
  const orderingKey = 'order-17';
  const { deliveries } = await make.message({ webhookId, orderingKey });
  const { id: deliveryId } = await make.deliveryOnce('exhausted', deliveries[0]?.id ?? '');
  await eventually('the key is blocked', async () => {
    const path = `/api/v1/webhooks/${webhookId}/ordering-keys?state=blocked`;
    return dataOf<unknown[]>(await api.get(path)).length === 1;
  });
  return { webhookId, orderingKey, deliveryId };
}
