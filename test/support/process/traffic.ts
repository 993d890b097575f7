import type { ApiClient } from '../api/api-client.ts';
import { eventually } from '../time/eventually.ts';
import type { RunningService } from './posthorn.ts';
import type { ShownDelivery } from '../api/resources.ts';

export interface Sent {
  messageId: string;
  deliveryId: string;
}

/** More open connections than this are slower on two cores. */
const AT_ONCE = 40;

/** Sends `each` messages to each of the webhooks in turn; returns them in the order of sending. */
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
  /** Returns what was accepted so far. */
  sent: () => Sent[];
  /** Stops sending; returns everything that was accepted. */
  stop: () => Promise<Sent[]>;
}

/** Sends a message at every interval, to one webhook after the other, without waiting for responses. */
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

/** Waits until all are delivered; returns the deliveries. */
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
  return inTurn(deliveryIds, (id) =>
    // Right after a jump of its clock a gateway responds 503 once.
    eventually(`delivery ${id}`, async () => {
      const { body } = await api.get(`/api/v1/deliveries/${id}`);
      return body.data as ShownDelivery | undefined;
    }),
  );
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

/**
 * Resolves when a metric is at least `atLeast`. What a service counts after it has stored or published something
 * may come later than what a client sees.
 */
export async function untilMetric(
  service: RunningService,
  name: string,
  label = '',
  atLeast = 1,
): Promise<void> {
  const isReached = async (): Promise<boolean> => (await metricOf(service, name, label)) >= atLeast;
  await eventually(`${name} ${label} of ${atLeast}`, isReached);
}

/** Returns the sum of a metric over all label sets that contain `label`; 0 when there is none. */
export async function metricOf(
  { opsUrl }: RunningService,
  name: string,
  label = '',
): Promise<number> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  const lines = text.split('\n').filter((line) => nameOf(line) === name);
  const values = lines.filter((line) => line.includes(label)).map((line) => line.split(' ').at(-1));
  return values.reduce((sum, value) => sum + Number(value), 0);
}

/** A metric without labels has no braces. */
function nameOf(line: string): string {
  return /^\w+/.exec(line)?.[0] ?? '';
}
