import type {
  ListedSequence,
  SequenceQueries,
} from '@posthorn/platform/mongo/messages/sequence-queries.ts';
import type { SequencePosition } from '@posthorn/platform/mongo/messages/sequences.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { ApiError, notFound } from '../api-error.ts';

interface OrderingKeysDeps {
  sequences: SequenceQueries;
  webhooks: Pick<WebhookStore, 'has'>;
}

interface OwnWebhook {
  companyId: string;
  webhookId: string;
}

type KeyState = ListedSequence['state'];

/** Where a page begins: behind this key of this state. */
export interface KeyPosition {
  state: KeyState;
  after: SequencePosition;
}

interface KeyQuery {
  /** Undefined for keys of both states. */
  state: KeyState | undefined;
  from: KeyPosition | undefined;
  limit: number;
}

interface KeyPage {
  keys: ListedSequence[];
  /** Null behind the last one. */
  next: KeyPosition | null;
}

const STATES: readonly KeyState[] = ['blocked', 'waiting'];

/**
 * Lists the ordering keys of a webhook whose deliveries wait: blocked ones first, each kind oldest first. A page may be
 * shorter than its limit. Throws ApiError 404 for an unknown webhook.
 */
export async function listOrderingKeys(
  { sequences, webhooks }: OrderingKeysDeps,
  webhook: OwnWebhook,
  { state, from, limit }: KeyQuery,
): Promise<KeyPage> {
  if (!(await webhooks.has(webhook.companyId, webhook.webhookId))) throw notFound('webhook');
  const wanted = STATES.filter((each) => state === undefined || each === state);
  const keys: ListedSequence[] = [];
  for (const each of wanted.slice(Math.max(0, wanted.indexOf(from?.state ?? 'blocked')))) {
    const after = each === from?.state ? from.after : undefined;
    const left = limit - keys.length;
    const page = await sequences.list(webhook, { state: each, after, limit: left });
    keys.push(...page.listed);
    if (page.next) return { keys, next: { state: each, after: page.next } };
  }
  return { keys, next: null };
}

interface SkipDeps extends OrderingKeysDeps {
  nowMs: () => number;
}

interface KeyToSkip extends OwnWebhook {
  orderingKey: string;
  /** The exhausted delivery that is to keep nothing back any more. */
  deliveryId: string;
}

/**
 * Goes on behind the exhausted delivery at which a key is blocked. Returns the key as it is listed, and null once it is
 * not. Throws ApiError 404 for an unknown webhook, and 409 unless the key is blocked at this delivery.
 */
export async function skipOrderingKey(
  { sequences, webhooks, nowMs }: SkipDeps,
  { deliveryId, ...place }: KeyToSkip,
): Promise<ListedSequence | null> {
  if (!(await webhooks.has(place.companyId, place.webhookId))) throw notFound('webhook');
  if (!(await sequences.skip(place, deliveryId, nowMs()))) throw new ApiError('not_blocked');
  return sequences.find(place);
}
