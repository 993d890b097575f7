import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { randomInt } from 'node:crypto';
import { createResources } from './resources.ts';
import { type ApiAnswer, type ApiClient } from './api-client.ts';
import { dataOf } from './expect-answers.ts';
import type { Place } from './request-places.ts';
import { makePortalLink } from './session-client.ts';
import { eventually } from '../time/eventually.ts';

/** One id of each kind, by the names of the parameters and fields that take them. */
export type Ids = Record<
  | 'projectId'
  | 'appId'
  | 'webhookId'
  | 'messageId'
  | 'deliveryId'
  | 'resendId'
  | 'cancellationId'
  | 'keyId'
  | 'linkId'
  | 'personId'
  | 'invitationId'
  | 'eventTypeName',
  string
>;

/** A client, and what belongs to it. */
export interface Owner {
  api: ApiClient;
  ids: Ids;
}

/**
 * Creates one resource of each kind, whose texts are `mark`, and waits until none changes any more. The
 * endpoint at `receiverUrl` must refuse every attempt.
 */
export async function createOneOfEach(
  api: ApiClient,
  receiverUrl: string,
  mark: string,
): Promise<Ids> {
  const make = createResources(api);
  const { id: projectId } = await make.project({ name: mark });
  const { id: appId } = await make.app({ name: mark, projectId });
  const url = `${receiverUrl}/${mark}`;
  const { id: webhookId } = await make.webhook({ name: mark, url, appId, hmacSecret: mark });
  const { id: messageId, deliveries } = await make.message({ appId, payload: { mark } });
  const deliveryId = String(deliveries[0]?.id);
  const { createdAt: since } = await make.deliveryOnce('exhausted', deliveryId);
  const resend = await api.post(`/api/v1/webhooks/${webhookId}/resend-failed`, { since });
  const { id: resendId } = dataOf<{ id: string }>(resend, 202);
  await eventually('the end of the resend', async () => {
    const { body } = await api.get(`/api/v1/resends/${resendId}`);
    return (body.data as { status: string }).status === 'done';
  });
  const cancellation = await api.post('/api/v1/deliveries/cancel', { appId, eventType: mark });
  const { id: cancellationId } = dataOf<{ id: string }>(cancellation, 202);
  await eventually('the end of the cancellation', async () => {
    const { body } = await api.get(`/api/v1/cancellations/${cancellationId}`);
    return (body.data as { status: string }).status === 'done';
  });
  const eventTypeName = `order.paid.of.${mark}`;
  const eventTypes = `/api/v1/projects/${projectId}/event-types`;
  dataOf(await api.post(eventTypes, { name: eventTypeName, description: mark }), 201);
  const key = await api.post('/api/v1/api-keys', { name: mark });
  const { id: keyId } = dataOf<{ id: string }>(key, 201);
  const { id: linkId } = await makePortalLink(api, appId, { capabilities: ['view'] });
  const made = { projectId, appId, webhookId, messageId, deliveryId, resendId };
  // Nobody signs in without an issuer: a person and an invitation of every company are unknown.
  const unknown = { personId: systemIds('usr'), invitationId: systemIds('inv') };
  return { ...made, cancellationId, keyId, linkId, eventTypeName, ...unknown };
}

/**
 * Everything that the API shows to this client, but for the last use of its API keys: reading
 * uses one, and the time is written seconds later.
 */
export async function everythingOf({ api, ids }: Owner): Promise<unknown[]> {
  const paths = [
    ...[`/projects`, `/projects/${ids.projectId}`, `/apps?projectId=${ids.projectId}`],
    ...[`/apps/${ids.appId}`, '/webhooks', `/webhooks/${ids.webhookId}`, '/webhook-messages'],
    ...[`/webhooks/${ids.webhookId}/health`, `/webhook-messages/${ids.messageId}`],
    ...[`/webhook-messages/${ids.messageId}/deliveries`, `/deliveries/${ids.deliveryId}`],
    ...[`/resends/${ids.resendId}`, '/resends', '/find-apps', '/api-keys'],
    ...[`/cancellations/${ids.cancellationId}`, '/cancellations'],
    ...[`/projects/${ids.projectId}/event-types`, `/apps/${ids.appId}/event-types`],
  ];
  const answers = await Promise.all(paths.map((path) => api.get(`/api/v1${path}`)));
  return answers.map((answer) => withoutLastUse(dataOf<unknown>(answer)));
}

function withoutLastUse(shown: unknown): unknown {
  const keep = (name: string, value: unknown): unknown =>
    name === 'lastUsedAt' ? undefined : value;
  return JSON.parse(JSON.stringify(shown, keep)) as unknown;
}

/** What cursors are ids of, by the end of the path; of messages otherwise. */
const CURSORS: Record<string, keyof Ids> = {
  deliveries: 'webhookId',
  resends: 'resendId',
  cancellations: 'cancellationId',
  'find-apps': 'appId',
  'find-webhooks': 'webhookId',
};

/** Returns the kind of id that belongs in this place, null when none does. Audit events have ids of their own. */
export function kindOf({ operation, name }: Place, ids: Ids): keyof Ids | null {
  if (operation.path.endsWith('/audit-events')) return null;
  if (name === 'cursor') {
    const [last = ''] = operation.path.split('/').slice(-1);
    return CURSORS[last] ?? 'messageId';
  }
  return name in ids ? (name as keyof Ids) : null;
}

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** Returns an id that no resource has, of the same kind and the same millisecond. */
export function unknownLike(id: string): string {
  const random = Array.from({ length: 16 }, () => ALPHABET[randomInt(32)]).join('');
  return id.slice(0, -16) + random;
}

/** What must be equal in the responses to two ids. */
export function comparable({ status, body }: ApiAnswer, id: string): object {
  const text = JSON.stringify({ ...body, requestId: undefined });
  return { status, body: text.replaceAll(id, 'ID') };
}
