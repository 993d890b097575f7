import { attemptIdOf, deliveryIdOf, isId, timePartOf } from '@posthorn/domain/ids/ids.ts';
import type {
  DeliveryOutline,
  DeliveryQueries,
} from '@posthorn/platform/mongo/deliveries/delivery-queries.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { ResendStore } from '@posthorn/platform/mongo/resends/resends.ts';
import { readDelivery, type ReadDeps } from '../read-delivery.ts';
import { ApiError } from '../../http/api-error.ts';
import type { Apps } from '../../projects/apps.ts';
import type { Projects } from '../../projects/projects.ts';
import type { ReadWebhookOutlines } from './webhook-outlines.ts';

export interface FindByIdDeps extends ReadDeps {
  projects: Pick<Projects, 'get'>;
  apps: Pick<Apps, 'get'>;
  messages: Pick<MessageQueries, 'outlinesOf' | 'findOne' | 'findByIdPrefix'>;
  deliveries: Pick<DeliveryQueries, 'findMany' | 'outlinesOf'>;
  resends: Pick<ResendStore, 'findShown'>;
  hasKey: (companyId: string, keyId: string) => Promise<boolean>;
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
  'api_key',
] as const;

/** What has an id, and what a page needs to show it. */
export interface Found {
  kind: (typeof FOUND_KINDS)[number];
  id: string;
  appId?: string | undefined;
  messageId?: string | undefined;
  deliveryId?: string | undefined;
  webhookId?: string | undefined;
}

/** Returns null when nothing of the company has the id. */
export type FindById = (companyId: string, id: string) => Promise<Found | null>;

type Find = (deps: FindByIdDeps, companyId: string, id: string) => Promise<Found | null>;

const BY_PREFIX: Record<string, Find> = {
  proj: async ({ projects }, companyId, id) =>
    (await projects.get(companyId, id).catch(nullIf404)) && { kind: 'project', id },
  app: async ({ apps }, companyId, id) =>
    (await apps.get(companyId, id).catch(nullIf404)) && { kind: 'app', id, appId: id },
  key: async ({ hasKey }, companyId, id) =>
    (await hasKey(companyId, id)) ? { kind: 'api_key', id } : null,
  wh: findWebhook,
  msg: findMessage,
  dlv: findDelivery,
  att: findAttempt,
  rsnd: findResend,
};

export function createFindById(deps: FindByIdDeps): FindById {
  return (companyId, id) => {
    const find = BY_PREFIX[id.slice(0, Math.max(0, id.indexOf('_')))];
    return find ? find(deps, companyId, id) : Promise.resolve(null);
  };
}

function nullIf404(error: unknown): null {
  if (error instanceof ApiError && error.status === 404) return null;
  throw error;
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
  deps: FindByIdDeps,
  companyId: string,
  id: string,
): Promise<Found | null> {
  const found = await readDelivery(deps, companyId, id);
  if (!found) return null;
  const { messageId, webhookId, appId } = found.source;
  return { kind: 'delivery', id, appId: appId ?? undefined, messageId, deliveryId: id, webhookId };
}

/** Targets that are looked at: of one message, or of several of one millisecond. */
const MAX_TARGETS = 10_000;

/** Ids of attempts are derived, and contain the millisecond of their message: no index is needed to find them. */
async function findAttempt(
  { messages, deliveries }: FindByIdDeps,
  companyId: string,
  id: string,
): Promise<Found | null> {
  if (!isId('att', id)) return null;
  const candidates = await messages.findByIdPrefix(companyId, `msg_${timePartOf(id)}`);
  const places = candidates
    .flatMap((message) => message.targets.map((webhookId) => ({ message, webhookId })))
    .slice(0, MAX_TARGETS)
    .map((place) => ({ ...place, deliveryId: deliveryIdOf(place.message.id, place.webhookId) }));
  const ids = places.map(({ deliveryId }) => deliveryId);
  const attempted = await deliveries.outlinesOf(companyId, ids);
  const found = attempted.find((each) => hasAttempt(each, id));
  const place = places.find(({ deliveryId }) => deliveryId === found?.id);
  if (!place) return null;
  const { message, webhookId, deliveryId } = place;
  const { id: messageId, appId } = message;
  return { kind: 'attempt', id, appId: appId ?? undefined, messageId, deliveryId, webhookId };
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
