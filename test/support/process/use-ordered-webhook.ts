import { dataOf } from '../api/expect-answers.ts';
import type { Resources, ShownDelivery } from '../api/resources.ts';
import type { Receiver } from '../receivers/receiver.ts';
import type { OwnCompany } from './posthorn.ts';
import type { SharedName } from './shared-posthorn.ts';
import { useCompany, useReceiver } from './use-company.ts';

export interface ShownKey {
  orderingKey: string;
  state: string;
  headDeliveryId: string;
  waiting: number;
}

/** A webhook with ordering keys, and messages to it, whose payloads are their numbers. */
export interface OrderedWebhook {
  posthorn: OwnCompany;
  make: Resources;
  receiver: Receiver;
  /** Creates the webhook that all the others are about. Its endpoint responds with 200 from then on. */
  begin: (ordering: 'block' | 'skip', fields?: object) => Promise<void>;
  id: () => string;
  /** The address of the webhook in the API, with what follows. */
  path: (rest?: string) => string;
  send: (n: number, orderingKey: string, fields?: object) => Promise<ShownDelivery>;
  /** The numbers of the messages, each once, in the order of their first requests. */
  arrived: () => number[];
  keys: () => Promise<ShownKey[]>;
}

export const numberIn = ({ body }: { body: Buffer }): number =>
  (JSON.parse(String(body)) as { n: number }).n;

/** Gives the tests of a block such a webhook, of a company of its own on the shared Posthorn. */
export function useOrderedWebhook(name: SharedName): OrderedWebhook {
  const { posthorn, make } = useCompany(name);
  const receiver = useReceiver();
  let webhookId = '';
  const path = (rest = ''): string => `/api/v1/webhooks/${webhookId}${rest}`;
  return {
    posthorn,
    make,
    receiver,
    async begin(ordering, fields = {}) {
      ({ id: webhookId } = await make.webhook({ url: receiver.url, ordering, ...fields }));
      // Requests of an earlier test may come late.
      dataOf(await posthorn.api.put(path(), { url: `${receiver.url}?${webhookId}` }));
      receiver.answerWith((response) => response.writeHead(200).end());
    },
    id: () => webhookId,
    path,
    async send(n, orderingKey, fields = {}) {
      const payload = { n };
      const { deliveries } = await make.message({ webhookId, orderingKey, payload, ...fields });
      return deliveries[0] as ShownDelivery;
    },
    arrived: () => [
      ...new Set(receiver.received.filter((each) => each.path.endsWith(webhookId)).map(numberIn)),
    ],
    keys: async () => dataOf(await posthorn.api.get(path('/ordering-keys'))),
  };
}
