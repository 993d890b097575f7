import { ApiError, Posthorn, PosthornError, type SendMessage } from '@posthorn/client';
import type { Company } from '../../load/traffic.ts';
import { payloadOf } from '../../load/receiver.ts';
import type { Scene } from '../../round.ts';
import { DELAYS_MS } from '../../stack/fleet.ts';
import { OrderBook } from './order-book.ts';
import {
  appOf,
  createOrderPlan,
  ENDPOINTS,
  FINAL,
  keyOf,
  KEYS,
  orderingOf,
  placeOf,
} from './order-plan.ts';

/** The company of the round with two apps, which have a webhook with `block` and one with `skip` each. */
export interface OrderedLoad {
  /** In the payload of each message. */
  run: string;
  api: Posthorn;
  /** For each gateway one that repeats nothing. */
  gateways: readonly Posthorn[];
  appIds: readonly string[];
  /** By endpoint. */
  webhookIds: readonly string[];
  book: OrderBook;
  perKey: number;
  /** Endpoints that reset every connection now. */
  down: Set<number>;
  /** From now on every message is accepted by its endpoint. */
  calmDown: () => void;
}

/** Messages of each key unless `--records` says how many there are of all keys. */
const PER_KEY = 100;
/** Within about 40 s: a gateway may be starting. */
const RETRIES = 8;

/** `perKey` is how many messages each key has; as many as `--records` says by default. */
export async function openOrderedLoad(
  scene: Scene,
  perKey = perKeyOf(scene),
): Promise<OrderedLoad> {
  const { baseUrls, receiver } = scene;
  const run = `order-${Date.now()}`;
  const { apiKey } = await createCompany(scene);
  const api = new Posthorn({ baseUrl: baseUrls[0], apiKey, maxRetries: RETRIES });
  const book = new OrderBook(DELAYS_MS.length + 1);
  const down = new Set<number>();
  let isCalm = false;
  const plan = createOrderPlan({
    perKey,
    isDown: (endpoint) => down.has(endpoint),
    isCalm: () => isCalm,
  });
  const { appIds, webhooks } = await createWebhooks(api, (endpoint) =>
    receiver.urlOf(run, endpoint),
  );
  const secrets = webhooks.map(({ secret }) => secret);
  receiver.open({ run, plan: () => plan, book, secrets });
  return {
    run,
    api,
    gateways: baseUrls.map((baseUrl) => new Posthorn({ baseUrl, apiKey, maxRetries: 0 })),
    appIds,
    webhookIds: webhooks.map(({ id }) => id),
    book,
    perKey,
    down,
    calmDown: () => {
      isCalm = true;
    },
  };
}

function perKeyOf({ records }: Scene): number {
  return records === undefined ? PER_KEY : Math.max(1, Math.round(records / KEYS));
}

async function createCompany({ run }: Scene): Promise<Company> {
  const args = ['company', 'create', 'Order', '--json'];
  return JSON.parse(await run('services/admin/src/main.ts', args)) as Company;
}

async function createWebhooks(api: Posthorn, urlOf: (endpoint: number) => string) {
  const { id: projectId } = await api.projects.create({ name: 'Order' });
  const appIds: string[] = [];
  const webhooks: { id: string; secret: string }[] = [];
  for (let endpoint = 0; endpoint < ENDPOINTS; endpoint += 1) {
    const ordering = orderingOf(endpoint);
    if (ordering === 'block') appIds.push((await api.apps.create({ name: 'Order', projectId })).id);
    const appId = appIds.at(-1) ?? '';
    const url = urlOf(endpoint);
    webhooks.push(await api.webhooks.create({ url, appId, ordering, finalStatusCodes: [FINAL] }));
  }
  return { appIds, webhooks };
}

/** Every second group of ten keys has one sender of batches; each key of the others has a sender of its own. */
const KEYS_OF_GROUP = 10;
const BATCH = 50;
const PLACES_OF_BATCH = BATCH / KEYS_OF_GROUP;
const REPEAT_AFTER_MS = 250;

/**
 * Sends the messages of all keys evenly over the time of the round, and resolves when that is over or all are accepted. A
 * sender has the 202 of a message, or of a batch, before it sends the next one, and repeats one that has none: so each
 * message is before all later ones of its key (docs/contract.md C29.2).
 */
export async function sendInOrder(load: OrderedLoad, { pause, seconds }: Scene): Promise<void> {
  const startedMs = performance.now();
  const elapsedMs = (): number => performance.now() - startedMs;
  const isTime = async (place: number): Promise<boolean> => {
    await pause(Math.max(0, (place / load.perKey) * seconds * 1_000 - elapsedMs()));
    return elapsedMs() < seconds * 1_000;
  };
  const sender: Sender = { load, pause, isTime };
  const keys = Array.from({ length: KEYS }, (_, key) => key);
  const groups = Map.groupBy(keys, (key) => Math.floor(key / KEYS_OF_GROUP));
  const sending = [...groups].flatMap(([group, ofGroup]) =>
    group % 2 === 0 ? ofGroup.map((key) => sendEach(sender, key)) : [sendBatches(sender, ofGroup)],
  );
  await Promise.all(sending);
}

interface Sender {
  load: OrderedLoad;
  pause: Scene['pause'];
  /** Waits until the message at this place of its key is due. Returns false when the time is over. */
  isTime: (place: number) => Promise<boolean>;
}

async function sendEach(sender: Sender, key: number): Promise<void> {
  const { load, isTime } = sender;
  for (let place = 0; place < load.perKey && (await isTime(place)); place += 1) {
    const n = place * KEYS + key;
    const options = { idempotencyKey: `${load.run}-${n}` };
    const { id } = await untilAccepted(sender, (gateway) =>
      gateway.messages.send(messageOf(load, n), options),
    );
    load.book.noteAccepted(n, id);
  }
}

async function sendBatches(sender: Sender, keys: readonly number[]): Promise<void> {
  const { load, isTime } = sender;
  for (let from = 0; from < load.perKey && (await isTime(from)); from += PLACES_OF_BATCH) {
    const places = Math.min(PLACES_OF_BATCH, load.perKey - from);
    const numbers = Array.from({ length: places }, (_, place) =>
      keys.map((key) => (from + place) * KEYS + key),
    ).flat();
    const messages = numbers.map((n) => messageOf(load, n));
    const options = { idempotencyKey: `${load.run}-batch-${keys[0] ?? 0}-${from}` };
    const ids = await untilAccepted(sender, async (gateway) => {
      const results = await gateway.messages.sendMany(messages, options);
      const accepted = results.flatMap(({ messageId }) => messageId ?? []);
      return accepted.length === messages.length ? accepted : null;
    });
    numbers.forEach((n, index) => {
      load.book.noteAccepted(n, ids[index] ?? '');
    });
  }
}

/** Sends to the gateways in turn until a request returns something. */
async function untilAccepted<T>(
  { load, pause }: Sender,
  send: (gateway: Posthorn) => Promise<T | null>,
): Promise<T> {
  for (;;) {
    for (const gateway of load.gateways) {
      const accepted = await send(gateway).catch(nullIfUnknown);
      if (accepted !== null) return accepted;
      await pause(REPEAT_AFTER_MS);
    }
  }
}

function messageOf({ run, appIds }: OrderedLoad, n: number): SendMessage {
  const key = keyOf(n);
  return {
    appId: appIds[appOf(key)] ?? '',
    orderingKey: `key-${key}`,
    externalId: `${placeOf(n)}`,
    rawPayload: payloadOf(run, n),
  };
}

const CONFLICT = 409;
const TOO_MANY = 429;
const SERVER_ERROR = 500;

/** Whether such a request was carried out is unknown. Throws what another request would not change. */
function nullIfUnknown(error: unknown): null {
  if (!(error instanceof PosthornError)) throw error;
  if (!(error instanceof ApiError)) return null;
  const { status } = error;
  if (status === CONFLICT || status === TOO_MANY || status >= SERVER_ERROR) return null;
  throw error;
}
