import { auditOrder, type ListedKey } from '../../audit/order.ts';
import { type Finding, finding } from '../../audit/evidence.ts';
import type { Scene } from '../../round.ts';
import type { Shown, Target } from './order-book.ts';
import { keyOf } from './order-plan.ts';
import type { OrderedLoad } from './ordered-load.ts';

const PAGE = 100;

/** Reads the listed keys of all webhooks. */
export async function readListed(load: OrderedLoad): Promise<Shown['listed']> {
  const listed = new Map<string, ListedKey>();
  for (const [endpoint, webhookId] of load.webhookIds.entries()) {
    const keys = load.api.webhooks.orderingKeys(webhookId, { limit: PAGE });
    for await (const { orderingKey, state, headDeliveryId, waiting } of keys) {
      listed.set(`${endpoint}/${orderingKey}`, { state, headDeliveryId, waiting });
    }
  }
  return listed;
}

/** Reads the deliveries that have ended without a success. */
async function readEnded({ api, webhookIds, book }: OrderedLoad): Promise<Shown['ended']> {
  const ended: Shown['ended'][number][] = [];
  const query = { status: 'exhausted,cancelled', limit: PAGE };
  for await (const { id, messageId, webhookId, status } of api.deliveries.list(query)) {
    const n = book.numberOf(messageId);
    if (n === undefined || (status !== 'exhausted' && status !== 'cancelled')) continue;
    ended.push({ n, endpoint: webhookIds.indexOf(webhookId), status, deliveryId: id });
  }
  return ended;
}

/** An outcome is recorded, and the list of keys follows, some hundredths of a second after the response. */
const RECORDED_WITHIN_MS = 30_000;
const READ_AGAIN_AFTER_MS = 1_000;

/** Audits until nothing is wrong, for half a minute at most. */
export async function auditRecorded(load: OrderedLoad, scene: Scene): Promise<Finding[]> {
  const endsMs = performance.now() + RECORDED_WITHIN_MS;
  for (;;) {
    const listed = await readListed(load);
    const findings = [
      ...auditOrder(load.book.keys({ ended: await readEnded(load), listed })),
      ...(await miscounted(load, listed)),
    ];
    if (findings.length === 0 || performance.now() > endsMs) return findings;
    await scene.pause(READ_AGAIN_AFTER_MS);
  }
}

/** `blockedKeys` of a webhook is the number of its blocked keys (docs/contract.md C29.10). */
async function miscounted({ api, webhookIds }: OrderedLoad, listed: Shown['listed']) {
  const wrong: string[] = [];
  for (const [endpoint, id] of webhookIds.entries()) {
    const { blockedKeys } = await api.webhooks.get(id);
    const names = [...listed].filter(
      ([name, { state }]) => name.startsWith(`${endpoint}/`) && state === 'blocked',
    );
    if (blockedKeys !== names.length) {
      wrong.push(`endpoint ${endpoint}: ${blockedKeys} instead of ${names.length}`);
    }
  }
  return finding('a wrong number of blocked keys', wrong);
}

/** Circuits, deferrals and looks at keys make no pause that is longer. */
const STALLED_MS = 120_000;
const MOST_MS = 4 * 3_600_000;

interface Drain {
  stalledMs?: number;
  /** Whether deliveries may wait behind a blocked one. */
  mayBlock?: boolean;
}

/**
 * Waits until each accepted delivery has ended or waits behind a blocked one, or no request has come for so long that it
 * counts as a stall: the audit names what is wrong then.
 */
export async function untilDrained(
  load: OrderedLoad,
  { until }: Scene,
  { stalledMs = STALLED_MS, mayBlock = true }: Drain = {},
): Promise<void> {
  const { book } = load;
  let [events, movedAtMs] = [book.events, performance.now()];
  const isOver = async (): Promise<boolean> => {
    if (book.events > events) [events, movedAtMs] = [book.events, performance.now()];
    if (performance.now() - movedAtMs > stalledMs) return true;
    return hasDrained(load, mayBlock);
  };
  await until('every delivery with an ordering key', isOver, MOST_MS);
}

async function hasDrained(load: OrderedLoad, mayBlock: boolean): Promise<boolean> {
  const listed = await readListed(load);
  const isSettled = ({ state }: ListedKey): boolean => state === 'blocked' && mayBlock;
  if (![...listed.values()].every(isSettled)) return false;
  const open = load.book.open({ ended: await readEnded(load) });
  return [...open].every((name) => listed.has(name));
}

/** Goes on behind every second blocked head, and sends the others again, until no key is listed any more. */
export async function freeBlocked(load: OrderedLoad, scene: Scene): Promise<number> {
  load.calmDown();
  const listed = await readListed(load);
  const ended = new Map((await readEnded(load)).map((each) => [each.deliveryId, each]));
  let turn = 0;
  for (const { state, headDeliveryId } of listed.values()) {
    const head = ended.get(headDeliveryId);
    if (state !== 'blocked' || !head) continue;
    if (turn % 2 === 0) await skip(load, head, headDeliveryId);
    else await load.api.deliveries.resend(headDeliveryId);
    turn += 1;
  }
  await untilDrained(load, scene, { mayBlock: false });
  return turn;
}

async function skip(load: OrderedLoad, head: Target, deliveryId: string): Promise<void> {
  const orderingKey = `key-${keyOf(head.n)}`;
  load.book.noteAsked(head, 'skippedAt');
  await load.api.webhooks.skipOrderingKey(load.webhookIds[head.endpoint] ?? '', {
    orderingKey,
    deliveryId,
  });
}

/** Cancels the head of a key that waits, when there is one. Rejects with a PosthornError when that has ended meanwhile. */
export async function cancelOne(load: OrderedLoad, random: () => number): Promise<void> {
  const endpoint = Math.floor(random() * load.webhookIds.length);
  const keys = load.api.webhooks.orderingKeys(
    load.webhookIds[endpoint] ?? '',
    { state: 'waiting', limit: 1 },
    { maxRetries: 0 },
  );
  const [head] = await keys.toArray({ limit: 1 });
  if (!head) return;
  const n = load.book.numberOf(head.headMessageId);
  if (n === undefined) return;
  load.book.noteAsked({ n, endpoint }, 'cancelledAt');
  await load.api.deliveries.cancel(head.headDeliveryId, { maxRetries: 0 });
}
