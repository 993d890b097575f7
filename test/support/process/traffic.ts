import type { ApiClient } from './api-client.ts';
import { eventually } from '../time/eventually.ts';
import type { RunningService } from './posthorn.ts';
import type { ShownDelivery } from './resources.ts';

export interface Sent {
  messageId: string;
  deliveryId: string;
}

/** More open connections than this make the two cores slower, not faster. */
const AT_ONCE = 40;

/** Sends this many messages to each of the webhooks, in turn. Answers them in the order of sending. */
export function sendMany(
  api: ApiClient,
  webhookIds: readonly string[],
  each: number,
): Promise<Sent[]> {
  const targets = Array.from({ length: each }, () => webhookIds).flat();
  return inTurn(targets, (webhookId) => api.send({ webhookId }, { to: webhookId }));
}

export interface Load {
  /** Resolves when at least this many were accepted. */
  reaches: (count: number) => Promise<void>;
  /** What was accepted so far. */
  sent: () => Sent[];
  /** Ends it; resolves with everything that was accepted. */
  stop: () => Promise<Sent[]>;
}

/** Sends a message every so often, to one webhook after the other, whether or not others wait for an answer. */
export function startLoad(api: ApiClient, webhookIds: readonly string[], everyMs: number): Load {
  const sending: Promise<void>[] = [];
  const sent: Sent[] = [];
  const timer = setInterval(() => {
    const webhookId = webhookIds[sending.length % webhookIds.length];
    sending.push(api.send({ webhookId }, {}).then((each) => void sent.push(each)));
  }, everyMs).unref();
  return {
    async reaches(count) {
      await eventually(`${count} accepted`, () => sent.length >= count, 60_000);
    },
    sent: () => [...sent],
    async stop() {
      clearInterval(timer);
      await Promise.all(sending);
      return sent;
    },
  };
}

/** Resolves with all deliveries once each is delivered. */
export async function untilDelivered(
  api: ApiClient,
  sent: readonly Sent[],
  withinMs?: number,
): Promise<ShownDelivery[]> {
  const delivered: ShownDelivery[] = [];
  let waiting = sent.map(({ deliveryId }) => deliveryId);
  let first: ShownDelivery | undefined;
  const look = async (): Promise<boolean> => {
    const shown = await readDeliveries(api, waiting);
    delivered.push(...shown.filter(({ status }) => status === 'delivered'));
    const others = shown.filter(({ status }) => status !== 'delivered');
    [first] = others;
    waiting = others.map(({ id }) => id);
    return waiting.length === 0;
  };
  await eventually(`all ${sent.length} delivered`, look, withinMs).catch((error: unknown) => {
    throw new Error(`${waiting.length} are not delivered, such as ${JSON.stringify(first)}`, {
      cause: error,
    });
  });
  return delivered;
}

export function readDeliveries(
  api: ApiClient,
  deliveryIds: readonly string[],
): Promise<ShownDelivery[]> {
  return inTurn(deliveryIds, async (id) => {
    const { body } = await api.get(`/api/v1/deliveries/${id}`);
    return body.data as ShownDelivery;
  });
}

async function inTurn<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

/** The sum over all labels that match; 0 when there is no such line. */
export async function metricOf(
  { opsUrl }: RunningService,
  name: string,
  label = '',
): Promise<number> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`));
  const values = lines.filter((line) => line.includes(label)).map((line) => line.split(' ').at(-1));
  return values.reduce((sum, value) => sum + Number(value), 0);
}
