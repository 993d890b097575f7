import { attemptIdOf, isId, timePartOf } from '@posthorn/domain/ids.ts';
import type {
  DeliveryOutline,
  DeliveryQueries,
} from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import type { FilterCancellations } from '@posthorn/platform/mongo/messages/filter-cancellations.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import { nullIf404 } from '../api-error.ts';
import type { NextSlice } from '../limits/slices.ts';
import type { Apps } from '../projects/apps.ts';
import type { Projects } from '../projects/projects.ts';
import { type DeliveryPlace, placesAt, readDelivery, type ReadStores } from './deliveries.ts';
import type { ReadWebhookOutlines } from './webhook-outlines.ts';

export interface FindByIdDeps extends ReadStores {
  projects: Pick<Projects, 'get'>;
  apps: Pick<Apps, 'get'>;
  messages: Pick<MessageQueries, 'outlinesOf' | 'findOne' | 'outlinesAt'>;
  deliveries: Pick<DeliveryQueries, 'findMany' | 'outlinesOf'>;
  resends: Pick<ResendStore, 'findShown'>;
  cancellations: Pick<FilterCancellations, 'findOne'>;
  apiKeys: { has: (companyId: string, keyId: string) => Promise<boolean> };
  readOutlines: ReadWebhookOutlines;
}

export const FOUND_KINDS = [
  'project',
  'app',
  'webhook',
  'message',
  'delivery',
  'attempt',
  'resend',
  'cancellation',
  'api_key',
] as const;

/** An object with an id, and the ids that a page needs to show it. */
export interface Found {
  kind: (typeof FOUND_KINDS)[number];
  id: string;
  appId?: string | undefined;
  messageId?: string | undefined;
  deliveryId?: string | undefined;
  webhookId?: string | undefined;
}

interface SearchDeps extends FindByIdDeps {
  nextSlice: NextSlice;
}

type Find = (deps: SearchDeps, companyId: string, id: string) => Promise<Found | null>;

const BY_PREFIX: Record<string, Find> = {
  proj: async ({ projects }, companyId, id) =>
    (await projects.get(companyId, id).catch(nullIf404)) && { kind: 'project', id },
  app: async ({ apps }, companyId, id) =>
    (await apps.get(companyId, id).catch(nullIf404)) && { kind: 'app', id, appId: id },
  key: async ({ apiKeys }, companyId, id) =>
    (await apiKeys.has(companyId, id)) ? { kind: 'api_key', id } : null,
  wh: findWebhook,
  msg: findMessage,
  dlv: findDelivery,
  att: findAttempt,
  rsnd: findResend,
  cncl: findCancellation,
};

/** Returns null when nothing of the company has the id. */
export async function findById(
  deps: FindByIdDeps,
  companyId: string,
  id: string,
  nextSlice: NextSlice,
): Promise<Found | null> {
  const find = BY_PREFIX[id.slice(0, Math.max(0, id.indexOf('_')))];
  return find ? find({ ...deps, nextSlice }, companyId, id) : null;
}

async function findWebhook(
  { readOutlines }: FindByIdDeps,
  companyId: string,
  id: string,
): Promise<Found | null> {
  const found = (await readOutlines(companyId, [id])).get(id);
  return found ? { kind: 'webhook', id, appId: found.appId ?? undefined, webhookId: id } : null;
}

async function findMessage(
  { messages }: FindByIdDeps,
  companyId: string,
  id: string,
): Promise<Found | null> {
  const [found] = await messages.outlinesOf(companyId, [id], 1);
  return found ? { kind: 'message', id, appId: found.appId ?? undefined, messageId: id } : null;
}

async function findDelivery(
  deps: SearchDeps,
  companyId: string,
  id: string,
): Promise<Found | null> {
  const found = await readDelivery(deps, companyId, id);
  if (!found) return null;
  const { messageId, webhookId, appId } = found.source;
  return { kind: 'delivery', id, appId: appId ?? undefined, messageId, deliveryId: id, webhookId };
}

/** Ids of attempts are derived, and contain the millisecond of their message: no index is needed to find them. */
async function findAttempt(deps: SearchDeps, companyId: string, id: string): Promise<Found | null> {
  if (!isId('att', id)) return null;
  for await (const places of placesAt(deps, { companyId, timePart: timePartOf(id) })) {
    const place = await placeOfAttempt(deps, companyId, places, id);
    if (!place) continue;
    const { message, webhookId, deliveryId } = place;
    const { id: messageId, appId } = message;
    return { kind: 'attempt', id, appId: appId ?? undefined, messageId, deliveryId, webhookId };
  }
  return null;
}

/** Ids of attempts that are derived in one turn: a millisecond of CPU time. A delivery has at most 200. */
const IDS_PER_TURN = 500;

async function placeOfAttempt(
  { deliveries, nextSlice }: SearchDeps,
  companyId: string,
  places: readonly DeliveryPlace[],
  attemptId: string,
): Promise<DeliveryPlace | undefined> {
  const ids = places.map(({ deliveryId }) => deliveryId);
  let derived = 0;
  for (const delivery of await deliveries.outlinesOf(companyId, ids)) {
    if (derived > IDS_PER_TURN) {
      await nextSlice();
      derived = 0;
    }
    derived += delivery.attemptCount;
    if (hasAttempt(delivery, attemptId)) {
      return places.find(({ deliveryId }) => deliveryId === delivery.id);
    }
  }
  return undefined;
}

function hasAttempt({ id, attemptCount }: DeliveryOutline, attemptId: string): boolean {
  for (let number = 1; number <= attemptCount; number += 1) {
    if (attemptIdOf(id, number) === attemptId) return true;
  }
  return false;
}

async function findResend(
  { resends }: FindByIdDeps,
  companyId: string,
  id: string,
): Promise<Found | null> {
  const found = await resends.findShown(companyId, id);
  if (!found) return null;
  const { appId, webhookId } = found;
  return { kind: 'resend', id, appId: appId ?? undefined, webhookId: webhookId ?? undefined };
}

async function findCancellation(
  { cancellations }: FindByIdDeps,
  companyId: string,
  id: string,
): Promise<Found | null> {
  const found = await cancellations.findOne(companyId, id);
  if (!found) return null;
  const { appId, webhookId } = found.filter;
  return { kind: 'cancellation', id, appId, webhookId };
}
