import { type AuthFields, authMethodOf } from '@posthorn/domain/auth-methods.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { secretFromBytes } from '@posthorn/domain/request/signature.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import { type GivenFields, newValues } from '@posthorn/domain/webhook-fields.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import { type Changed, documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { WebhookDocument } from '@posthorn/platform/mongo/documents.ts';
import type { WebhookChanges, WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import type { mongo } from 'mongoose';
import { randomBytes } from 'node:crypto';
import type { NewMessage } from '../accept/build-message.ts';
import type { EventTypes } from '../catalogue/event-types.ts';
import type { AcceptOne, AcceptOneOptions } from '../accept/idempotency.ts';
import { readDelivery, type ReadDelivery, type ReadStores } from '../history/deliveries.ts';
import { foundOr404, notFound, unavailable } from '../api-error.ts';
import type { Quotas } from '../projects/quotas.ts';
import type { Apps } from '../projects/apps.ts';
import type { Projects } from '../projects/projects.ts';
import type { RemoveTree } from '../projects/remove-tree.ts';
import { claimFor, type Uids } from '../projects/uids.ts';

interface CreateWebhookDeps {
  projects: Pick<Projects, 'get' | 'exists'>;
  apps: Pick<Apps, 'get' | 'exists'>;
  eventTypes: Pick<EventTypes, 'assertSelectable'>;
  webhooks: Pick<WebhookStore, 'insert' | 'deleteOne' | 'countOf'>;
  quotas: Quotas;
  uids: Pick<Uids, 'claim'>;
  nowMs: () => number;
  invalidate: Invalidate;
}

/** A request whose fields were checked: either `appId`, or `projectId` with `environmentId`. */
type NewWebhook = GivenFields & AuthFields & { id: string };

/**
 * Creates the webhook after `isRecorded`. Throws ApiError 404 for an unknown app or project, 400 for an event type that its
 * project does not know, 409 when it has as many webhooks as it may, and when another webhook has the uid.
 */
export async function createWebhook(
  deps: CreateWebhookDeps,
  companyId: string,
  fields: NewWebhook,
  isRecorded: Promise<unknown>,
): Promise<Webhook> {
  const { webhooks, quotas, invalidate } = deps;
  const [projectId] = await Promise.all([checkedProjectOf(deps, companyId, fields), isRecorded]);
  const webhook = newWebhook(deps, companyId, projectId, fields);
  const { appId } = webhook;
  const owner = { appId, projectId };
  await quotas.createWithin({
    setting: appId === null ? 'QUOTA_GLOBAL_WEBHOOKS_PER_PROJECT' : 'QUOTA_WEBHOOKS_PER_APP',
    companyId,
    ownerId: appId ?? projectId,
    count: (upTo) => webhooks.countOf(companyId, owner, upTo),
    create: () => insert(deps, webhook),
  });
  await invalidate({ companyId, id: appId ?? webhook.id });
  return webhook;
}

async function insert(deps: CreateWebhookDeps, webhook: Webhook): Promise<void> {
  const { companyId, id, appId, projectId } = webhook;
  await claimFor(deps.uids, 'webhook')(webhook, () => deps.webhooks.insert(webhook));
  const owner = appId === null ? 'project' : 'app';
  const { exists } = appId === null ? deps.projects : deps.apps;
  if (await exists(companyId, appId ?? projectId)) return;
  // The app or project was deleted meanwhile. No webhook may outlive its owner.
  await deps.webhooks.deleteOne(companyId, id);
  throw notFound(owner);
}

async function checkedProjectOf(
  deps: CreateWebhookDeps,
  companyId: string,
  fields: NewWebhook,
): Promise<string> {
  const projectId = await projectIdOf(deps, companyId, fields);
  await deps.eventTypes.assertSelectable({ companyId, projectId }, fields.eventTypes ?? []);
  return projectId;
}

async function projectIdOf(
  { projects, apps }: CreateWebhookDeps,
  companyId: string,
  { appId, projectId }: NewWebhook,
): Promise<string> {
  if (appId !== undefined) return (await apps.get(companyId, appId)).projectId;
  if (projectId === undefined) {
    throw new ImpossibleError('a checked request has an appId or a projectId');
  }
  return (await projects.get(companyId, projectId))._id;
}

function newWebhook(
  { nowMs }: Pick<CreateWebhookDeps, 'nowMs'>,
  companyId: string,
  projectId: string,
  fields: NewWebhook,
): Webhook {
  const { secret = newSecret() } = fields;
  const createdAtMs = nowMs();
  return {
    ...newValues(fields),
    id: fields.id,
    companyId,
    projectId,
    secret,
    previousSecret: null,
    rotations: null,
    cancelBeforeMs: null,
    held: null,
    disabledReason: null,
    authMethod: authMethodOf(fields, undefined, secret),
    createdAtMs,
    updatedAtMs: createdAtMs,
  };
}

interface ChangeDeps {
  uids: Pick<Uids, 'claim'>;
  webhooks: Pick<WebhookStore, 'findOne' | 'update'>;
  nowMs: () => number;
  invalidate: Invalidate;
}

interface Which {
  companyId: string;
  webhookId: string;
}

type Decide = (seen: Webhook) => WebhookChanges | null;

/**
 * Reads the webhook, calls `decide`, and writes its changes; starts again when another process has changed the
 * webhook in between. Returns the webhook before and after. `decide` returns null for no change. Throws ApiError 404
 * for an unknown webhook, 409 when another one has the uid, 503 when other processes keep changing it, and the errors of
 * `decide`.
 */
export type ChangeWebhook = (which: Which, decide: Decide) => Promise<Changed<Webhook>>;

/** The most tries while other processes change the webhook. Changes in this process wait for each other. */
const MAX_TRIES = 10;
const doNothing = (): void => undefined;

export function createChangeWebhook(deps: ChangeDeps): ChangeWebhook {
  /** The last change of each webhook, until it has ended. */
  const lastChanges = new Map<string, Promise<void>>();
  return (which, decide) => {
    const { webhookId: id } = which;
    const before = lastChanges.get(id) ?? Promise.resolve();
    const change = before.then(() => changeNow(deps, which, decide));
    const settled = change.then(doNothing, doNothing).finally(() => {
      if (lastChanges.get(id) === settled) lastChanges.delete(id);
    });
    lastChanges.set(id, settled);
    return change;
  };
}

async function changeNow(
  { uids, webhooks, nowMs, invalidate }: ChangeDeps,
  { companyId, webhookId }: Which,
  decide: Decide,
): Promise<Changed<Webhook>> {
  for (let tryNumber = 1; tryNumber <= MAX_TRIES; tryNumber += 1) {
    const seen = await webhooks.findOne(companyId, webhookId);
    if (!seen) throw notFound('webhook');
    const changes = decide(seen);
    if (!changes) return { before: seen, after: seen };
    // Later than the last time, even within one millisecond: it is the version in the store.
    const updatedAtMs = Math.max(nowMs(), seen.updatedAtMs + 1);
    const changed = await claimFor(uids, 'webhook')({ ...seen, ...changes }, () =>
      webhooks.update(seen, { ...changes, updatedAtMs }),
    );
    if (!changed) continue;
    await invalidate({ companyId, id: webhookId });
    if (changed.appId) await invalidate({ companyId, id: changed.appId });
    return { before: seen, after: changed };
  }
  throw unavailable('changed_by_others');
}

interface DeleteWebhookDeps {
  db: mongo.Db;
  remove: RemoveTree;
  invalidate: Invalidate;
}

/** Returns the deleted webhook. Throws ApiError 404 for an unknown one. */
export async function deleteWebhook(
  { db, remove, invalidate }: DeleteWebhookDeps,
  companyId: string,
  id: string,
): Promise<WebhookDocument> {
  const webhooks = documentsOf(db, 'webhooks', companyId);
  const found = foundOr404(await webhooks.findOne({ _id: id }), 'webhook');
  if (!(await remove({ companyId, kind: 'webhook', id }))) throw notFound('webhook');
  // The next message to its app must not go to this webhook.
  if (found.appId) await invalidate({ companyId, id: found.appId });
  return found;
}

interface RotateSecretDeps {
  changeWebhook: ChangeWebhook;
  nowMs: () => number;
}

interface Rotation {
  /** The id of the rotation, the same in a repeat of its request. */
  id: string;
  companyId: string;
  webhookId: string;
  /** The new one. */
  secret: string;
  /** The time in which the old secret signs too; 0 for none. */
  graceSeconds: number;
}

/**
 * Rotations that a webhook remembers, in half a kilobyte. A repeat may come for 24 hours (docs/contract.md C8.6), and
 * would bring an older secret back only when its webhook was rotated so often in between.
 */
const ROTATIONS_KEPT = 16;

/**
 * Gives a webhook another secret, and returns it before and after. A rotation that was applied changes nothing, also after
 * further ones. Throws ApiError 404 for an unknown webhook.
 */
export function rotateSecret(
  { changeWebhook, nowMs }: RotateSecretDeps,
  { id, companyId, webhookId, graceSeconds, secret }: Rotation,
): Promise<Changed<Webhook>> {
  const expiresAtMs = graceSeconds > 0 ? nowMs() + graceSeconds * 1_000 : null;
  return changeWebhook({ companyId, webhookId }, (webhook) => {
    const applied = webhook.rotations ?? [];
    if (applied.includes(id)) return null;
    // Also one to the present secret: its repeat after a further rotation would bring that secret back.
    const rotations = [...applied, id].slice(-ROTATIONS_KEPT);
    return { ...rotated(webhook, secret, expiresAtMs), rotations };
  });
}

/** An `hmacSecret` of the client stays; one that equals the secret of the webhook changes with it. */
function rotated(
  { authMethod, secret: old, previousSecret }: Webhook,
  secret: string,
  expiresAtMs: number | null,
): WebhookChanges {
  if (secret === old) return withShorterGrace(previousSecret, expiresAtMs);
  const followsSecret = authMethod.method === 'hmac' && authMethod.hmacSecret === old;
  return {
    secret,
    previousSecret: expiresAtMs === null ? null : { secret: old, expiresAtMs },
    ...(followsSecret && { authMethod: { ...authMethod, hmacSecret: secret } }),
  };
}

/**
 * The changes of a rotation to the secret that the webhook has: a repeat of a request whose response was lost must not end
 * the grace that the first one began. The grace only becomes shorter, as a further rotation would end it.
 */
function withShorterGrace(
  previousSecret: Webhook['previousSecret'],
  expiresAtMs: number | null,
): WebhookChanges {
  if (!previousSecret) return {};
  if (expiresAtMs === null) return { previousSecret: null };
  if (expiresAtMs >= previousSecret.expiresAtMs) return {};
  return { previousSecret: { ...previousSecret, expiresAtMs } };
}

/** Standard Webhooks requires 24 to 64. */
const SECRET_BYTES = 32;

/** Returns a random secret in the format of Standard Webhooks. */
export function newSecret(): string {
  return secretFromBytes(randomBytes(SECRET_BYTES));
}

interface SendTestDeps extends ReadStores {
  acceptOne: AcceptOne;
  webhooks: ReadStores['webhooks'] & Pick<WebhookStore, 'findTarget'>;
  eventTypes: Pick<EventTypes, 'find'>;
  nowMs: () => number;
}

interface TestRequest
  extends AcceptOneOptions, Pick<NewMessage, 'companyId' | 'requestId' | 'idempotency'> {
  webhookId: string;
  /** The message has it, and the example of it as its payload. */
  eventType: string | null;
}

/**
 * Accepts a small message to one webhook and returns its delivery. Throws ApiError 404 for an unknown webhook, and for an
 * event type that is unknown or archived.
 */
export async function sendTestMessage(
  deps: SendTestDeps,
  { companyId, webhookId, eventType, requestId, idempotency, ...options }: TestRequest,
): Promise<ReadDelivery> {
  const sentAt = new Date(deps.nowMs()).toISOString();
  const example =
    eventType === null ? null : await exampleOf(deps, companyId, { webhookId, eventType });
  const message = {
    companyId,
    address: { kind: 'webhook', webhookId },
    eventType,
    requestId,
    idempotency,
    isTest: true,
    payload: example ?? JSON.stringify({ type: 'webhook.test', webhookId, sentAt }),
  } as const;
  const accepted = await deps.acceptOne(message, options);
  const deliveryId = deliveryIdOf(accepted.message.id, webhookId);
  const found = await readDelivery(
    { ...deps, nextSlice: options.nextSlice },
    companyId,
    deliveryId,
  );
  if (!found) throw notFound('webhook');
  return found;
}

/** Returns null for an event type without an example. */
async function exampleOf(
  { webhooks, eventTypes }: SendTestDeps,
  companyId: string,
  { webhookId, eventType: name }: { webhookId: string; eventType: string },
): Promise<string | null> {
  const { projectId } = foundOr404(await webhooks.findTarget(companyId, webhookId), 'webhook');
  const found = foundOr404(await eventTypes.find(companyId, { projectId, name }), 'event type');
  if (found.archived) throw notFound('event type');
  return found.example;
}
