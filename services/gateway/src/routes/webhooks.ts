import type { ChangedAuthFields } from '@posthorn/domain/auth-methods.ts';
import { eventType, optionalFields, webhookSecret } from '@posthorn/domain/field-types.ts';
import { secretFromBytes } from '@posthorn/domain/request/signature.ts';
import { auditedFields } from '@posthorn/domain/webhook-fields.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { WebhookChanges } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { idempotencyOf } from '../accept/idempotency.ts';
import type { Gateway } from '../gateway.ts';
import { readHealth } from '../history/health.ts';
import { forOneApp, insufficientScope, invalidRequest, notFound } from '../api-error.ts';
import {
  type ApiResponse,
  route,
  type Route,
  SECRETS_READ,
  type Upsert,
  upsert,
} from '../http/route.ts';
import { describeParts } from '../http/send-json.ts';
import { type Caller, seesSecrets } from '../keys/rights.ts';
import { checkHeaderBytes } from '../projects/quotas.ts';
import { upsertByUid, uidTaken } from '../projects/uids.ts';
import { deliverySchema, describeDelivery } from './message-responses.ts';
import {
  describeWebhook,
  describeWebhookWithAuth,
  healthSchema,
  shownTo,
  webhookSchema,
  webhookWithAuthSchema,
} from './webhook-responses.ts';
import { findWebhooks, listWebhooks } from '../webhooks/find-webhooks.ts';
import {
  createWebhook,
  deleteWebhook,
  rotateSecret,
  sendTestMessage,
} from '../webhooks/webhooks.ts';
import {
  cursor,
  describeHold,
  graceSeconds,
  heldField,
  idField,
  idList,
  idsIn,
  idText,
  isoTime,
  limit,
  skip,
  text,
  timeField,
  uid,
  upsertQuery,
} from './fields.ts';
import {
  changesOf,
  createWebhookBody,
  updateProblems,
  type UpdateWebhookBody,
  updateWebhookBody,
} from './webhook-body.ts';

const tag = 'Webhooks';
const path = '/webhooks/:webhookId';

const secrets = z.enum(['true', 'false'], 'must be true or false').default('true').meta({
  description:
    'With `false`, secrets are shown as `********`, and the audit log records no read of them',
});

const listQuery = z.object({
  secrets,
  appId: idText('app').optional().meta({ description: 'Only the webhooks of this app' }),
  limit: limit(1_000, 1_000),
  skip,
});

/** See docs/contract.md C6. */
export function webhookRoutes(gateway: Gateway): Route[] {
  return [
    createRoute(gateway),
    listRoute(gateway),
    getRoute(gateway),
    updateRoute(gateway),
    deleteRoute(gateway),
  ];
}

function createRoute(gateway: Gateway): Route {
  return route({
    operationId: 'createWebhook',
    method: 'post',
    path: '/webhooks',
    scope: 'webhooks:write',
    portal: 'manage',
    audit: { action: 'webhook.created', target: 'webhook' },
    tag,
    summary: 'Create a webhook',
    description:
      'A webhook belongs to an app (`appId`), or is global (`projectId` and `environmentId`). `authMethod` decides which credential fields are required.',
    body: createWebhookBody(gateway.policy),
    response: { status: 201, message: 'Webhook created', data: webhookWithAuthSchema },
    errors: ['not_found', 'uid_taken', 'quota_exceeded'],
    creation: {
      readsFirst: true,
      showsSecrets: true,
      async find({ caller, newId }) {
        const found = await gateway.webhooks.findOne(caller.companyId, newId('wh'));
        return found && { data: shownTo(caller, describeWebhookWithAuth)(found) };
      },
    },
    async handle({ caller, body: { value }, newId, isRecorded }) {
      const webhook = { ...value, id: newId('wh') };
      const created = await create(gateway, caller, webhook, isRecorded);
      return { data: shownTo(caller, describeWebhookWithAuth)(created) };
    },
  });
}

type NewWebhook = z.infer<ReturnType<typeof createWebhookBody>>;

async function create(
  gateway: Gateway,
  caller: Caller,
  fields: NewWebhook & { id: string },
  isRecorded: Promise<unknown>,
): Promise<Webhook> {
  const { companyId } = caller;
  assertInApp(caller, fields);
  assertMayName(caller, fields);
  checkHeaderBytes(fields.customHeaders, gateway.maxHeaderBytes);
  // A signing key is a change as well.
  if (fields.signatureAlgorithm === 'ed25519') await isRecorded;
  await ensureSigningKey(gateway, companyId, fields);
  return createWebhook(gateway, companyId, fields, isRecorded);
}

/** The body of a request names the app that its key is for, or none. */
function assertInApp(caller: Caller, { appId }: Pick<NewWebhook, 'appId'>): void {
  if (caller.appId !== null && appId === undefined) throw forOneApp();
}

/** A uid is unique for the company: a visitor of one portal must not take one from the others, nor find out about theirs. */
function assertMayName({ portal }: Caller, { uid }: { uid?: string | null | undefined }): void {
  if (portal && uid !== undefined) {
    throw insufficientScope('A visitor of the portal cannot change a uid.');
  }
}

/** Called before the webhook is stored: a dispatcher that finds the webhook must find a key too. */
async function ensureSigningKey(
  { companyKeys }: Gateway,
  companyId: string,
  { signatureAlgorithm }: Pick<ChangedAuthFields, 'signatureAlgorithm'>,
): Promise<void> {
  if (signatureAlgorithm === 'ed25519') await companyKeys.ensure(companyId);
}

function listRoute(gateway: Gateway): Route {
  return route({
    operationId: 'listWebhooks',
    method: 'get',
    path: '/webhooks',
    scope: 'read',
    portal: 'view',
    audit: SECRETS_READ,
    tag,
    summary: 'List the webhooks, oldest first',
    description:
      'A webhook whose stored secrets cannot be decrypted is left out, so a page may hold fewer than `limit`.',
    query: listQuery,
    response: { status: 200, message: 'Webhooks found', data: z.array(webhookSchema) },
    errors: ['not_found'],
    async handle({ caller, query, reserve, nextSlice }) {
      const appId = query.appId ?? caller.appId ?? undefined;
      const { skip, limit } = query;
      const hidesSecrets = query.secrets === 'false';
      const parts = await listWebhooks(
        gateway,
        caller.companyId,
        { appId, skip, limit },
        nextSlice,
      );
      const describe = shownTo(caller, describeWebhook, !hidesSecrets);
      const shown = { describe, bytes: LONG_LIST_BYTES, reserve };
      return { pages: describeParts(parts, shown), hidesSecrets };
    },
  });
}

/** 50 webhooks of at most 37 kB each, as objects and as text. */
const LONG_LIST_BYTES = 4_194_304;

/** Blocked keys that are counted. */
const MOST_BLOCKED = 1_000;

function getRoute(gateway: Gateway): Route {
  return route({
    operationId: 'getWebhook',
    method: 'get',
    path,
    scope: 'read',
    portal: 'view',
    audit: SECRETS_READ,
    tag,
    summary: 'Get a webhook',
    query: z.object({ secrets }),
    response: { status: 200, message: 'Webhook found', data: webhookWithAuthSchema },
    errors: ['not_found'],
    async handle({ caller, params: { webhookId = '' }, query }) {
      const found = await gateway.webhooks.findOne(caller.companyId, webhookId);
      if (!found) throw notFound('webhook');
      const hidesSecrets = query.secrets === 'false';
      const describe = shownTo(caller, describeWebhookWithAuth, !hidesSecrets);
      const { companyId } = caller;
      const [waiting, blockedKeys] = await Promise.all([
        gateway.holds.countWaiting(found),
        gateway.sequences.countBlocked({ companyId, webhookId: found.id }, MOST_BLOCKED),
      ]);
      return { data: { ...describe(found), waiting, blockedKeys }, hidesSecrets };
    },
  });
}

function updateRoute(gateway: Gateway): Route {
  return route({
    operationId: 'updateWebhook',
    method: 'put',
    path,
    scope: 'webhooks:write',
    portal: 'manage',
    audit: { action: 'webhook.updated', target: 'webhook' },
    tag,
    summary: 'Update a webhook',
    description:
      'Fields that are left out keep their values, and so does a custom header whose value is given as `********`. Null takes a field away, back to its default. Credential fields must belong to the current method of authentication, or to the one given in `authMethod`; a new method requires all of its own fields. Who may not see secrets gives them again with a URL of another server.',
    query: upsertQuery,
    body: updateWebhookBody(gateway.policy),
    isBodyOptional: true,
    response: { status: 200, message: 'Webhook updated', data: webhookSchema },
    errors: ['not_found', 'uid_taken', 'quota_exceeded'],
    async problemsOf({ caller, params: { webhookId = '' }, fields }) {
      const webhook = await gateway.webhooks.findOne(caller.companyId, webhookId);
      const asker = { seesSecrets: seesSecrets(caller) };
      return webhook ? updateProblems(fields, webhook, gateway.policy, asker) : [];
    },
    upsert: upsertWebhook(gateway),
    handle: ({ caller, params: { webhookId = '' }, body: { value } }) =>
      update(gateway, caller, { id: webhookId, changes: value }),
  });
}

interface Update {
  id: string;
  changes: UpdateWebhookBody;
  /** Of an upsert: throws when the webhook is not the one that it means. */
  check?: (webhook: Webhook) => void;
}

async function update(
  gateway: Gateway,
  caller: Caller,
  { id: webhookId, changes: given, check }: Update,
): Promise<ApiResponse> {
  const { companyId } = caller;
  assertMayName(caller, given);
  await assertEventTypes(gateway, { companyId, webhookId }, given.eventTypes ?? []);
  await ensureSigningKey(gateway, companyId, given);
  const asker = { seesSecrets: seesSecrets(caller) };
  const { before, after } = await gateway.changeWebhook({ companyId, webhookId }, (webhook) => {
    check?.(webhook);
    const changes = changesOf(webhook, given, asker);
    checkHeaderBytes(changes?.customHeaders, gateway.maxHeaderBytes);
    // A hundred upserts at once, with the same fields, must not wait for each other's writes.
    return check && changes && changesNothing(webhook, changes) ? null : changes;
  });
  if (before.disabled !== after.disabled) await gateway.holds.onDisabledOrEnabled(after);
  if (before.ordering !== after.ordering) await gateway.holds.onOrderingChanged(after);
  const changed = { before: auditedFields(before), after: auditedFields(after) };
  return { data: shownTo(caller, describeWebhook)(after), changed };
}

/** Entries that the webhook has already may stay. */
async function assertEventTypes(
  { webhooks, eventTypes }: Gateway,
  { companyId, webhookId }: { companyId: string; webhookId: string },
  given: readonly string[],
): Promise<void> {
  if (given.length === 0) return;
  const seen = await webhooks.findTarget(companyId, webhookId);
  if (!seen) throw notFound('webhook');
  const { projectId, eventTypes: before } = seen;
  await eventTypes.assertSelectable({ companyId, projectId }, given, before);
}

function changesNothing(webhook: Webhook, changes: WebhookChanges): boolean {
  return isDeepStrictEqual({ ...webhook, ...changes }, { ...webhook });
}

function upsertWebhook(gateway: Gateway): Upsert {
  const body = createWebhookBody(gateway.policy);
  // A name that is null means the same as none, as in a creation.
  const changes = updateWebhookBody(gateway.policy).extend({ name: body.shape.name });
  return upsert({
    body,
    action: 'webhook.created',
    response: { status: 201, message: 'Webhook created', data: webhookSchema },
    errors: ['quota_exceeded'],
    async handle({ caller, body: given, newId, isRecorded }, uid) {
      const { companyId } = caller;
      const { value } = given;
      // Another request may create a global webhook with this uid meanwhile, which would be updated.
      assertInApp(caller, value);
      const own = { companyId, kind: 'webhook', uid } as const;
      const check = (webhook: Webhook): void => {
        if (!isSameOwner(webhook, value)) throw uidTaken(own);
        if (value.secret !== undefined && value.secret !== webhook.secret) throw otherSecret();
      };
      return upsertByUid<ApiResponse>(gateway.uids, own, {
        given: value.uid,
        async create() {
          const webhook = { ...value, uid, id: newId('wh') };
          const created = await create(gateway, caller, webhook, isRecorded);
          return { data: shownTo(caller, describeWebhook)(created) };
        },
        update(id) {
          const { name, ...others } = given.as(changes);
          const named = name === undefined ? others : { ...others, name };
          return update(gateway, caller, { id, changes: named, check });
        },
      });
    },
  });
}

const otherSecret = (): Error =>
  invalidRequest([
    { path: 'secret', message: 'is not that of the webhook, which only a rotation changes' },
  ]);

/** Of a global webhook the app is null, and of another one the environment. */
function isSameOwner(webhook: Webhook, given: NewWebhook): boolean {
  const { appId, projectId, environmentId } = webhook;
  if (given.appId !== undefined) return appId === given.appId;
  return appId === null && projectId === given.projectId && environmentId === given.environmentId;
}

function deleteRoute(gateway: Gateway): Route {
  return route({
    operationId: 'deleteWebhook',
    method: 'delete',
    path: '/webhooks/:webhookId',
    scope: 'webhooks:write',
    portal: 'manage',
    audit: { action: 'webhook.deleted', target: 'webhook' },
    tag: 'Webhooks',
    summary: 'Delete a webhook',
    description: 'Cancels its pending deliveries. Messages and deliveries stay readable.',
    response: { status: 200, message: 'Webhook deleted' },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { webhookId = '' } }) {
      // Without the sealed fields: a webhook that cannot be decrypted can be deleted too.
      const deleted = await deleteWebhook(gateway, companyId, webhookId);
      return { changed: { before: auditedFields(deleted), after: {} } };
    },
  });
}

const MAX_IDS = 100;

const findQuery = z.object({
  text: text(1, 512).optional().meta({
    description: 'Part of the URL, the name or an event type, in any case, or the whole id or uid',
    example: 'example.com',
  }),
  ids: idList(MAX_IDS).optional(),
  appId: idText('app').optional().meta({ description: 'Only the webhooks of this app' }),
  projectId: idText('proj')
    .optional()
    .meta({ description: 'Only the webhooks of this project and its apps' }),
  eventType: eventType.optional().meta({
    description: 'Only webhooks that select it by name, by a wildcard or by selecting all',
  }),
  limit: limit(100, 20),
  cursor: cursor('wh').optional(),
});

const foundWebhookSchema = z
  .object({
    id: idField('wh'),
    uid: uid.nullable(),
    url: z.string(),
    name: z.string(),
    eventTypes: z.array(z.string()).meta({ description: 'Empty for all' }),
    disabled: z.boolean(),
    held: heldField,
    appId: idField('app').nullable().meta({ description: 'Null for a global webhook' }),
    appName: z.string().nullable(),
    projectId: idField('proj').nullable().meta({ description: 'Of a global webhook' }),
    environmentId: z.string().nullable().meta({ description: 'Of a global webhook' }),
    createdAt: timeField,
  })
  .meta({ id: 'FoundWebhook' });

/** See docs/contract.md C21.8. */
export function findWebhooksRoute({ db }: Gateway): Route {
  return route({
    operationId: 'findWebhooks',
    method: 'get',
    path: '/find-webhooks',
    versionedOnly: true,
    scope: 'read',
    portal: 'view',
    tag: 'Overview',
    summary: 'Find webhooks of any app by URL, name, event type or id, newest first',
    description:
      'One request examines 1,000 webhooks. A page may therefore hold fewer entries than `limit`, or none, although `nextCursor` is not null. Ids that do not exist are left out.',
    query: findQuery,
    idsOf: 'webhook',
    response: {
      status: 200,
      message: 'Webhooks found',
      hasCursor: true,
      data: z.array(foundWebhookSchema),
    },
    async handle({ caller: { companyId, appId: onlyOf }, query, nextSlice }) {
      const { cursor: beforeId, ids, ...search } = query;
      const appId = search.appId ?? onlyOf ?? undefined;
      const wanted = {
        ...search,
        ids: ids === undefined ? undefined : idsIn(ids),
        appId,
        beforeId,
      };
      const found = await findWebhooks(db, companyId, wanted, nextSlice);
      const data = found.webhooks.map((each) => ({
        ...each,
        held: describeHold(each.held),
        createdAt: isoTime(each.createdAt),
      }));
      return { data, nextCursor: found.nextCursor };
    },
  });
}

const versionedOnly = true;

/** See docs/contract.md C13. */
export function webhookActionRoutes(gateway: Gateway): Route[] {
  return [rotateRoute(gateway), testWebhook(gateway), webhookHealth(gateway)];
}

const rotateBody = z
  .object({
    graceSeconds: graceSeconds.meta({
      description: 'How long the old secret signs beside the new one, in seconds',
    }),
    ...optionalFields({
      secret: webhookSecret.meta({
        description:
          'The new secret: `whsec_` and the base64 of 24 to 64 bytes. 32 random ones unless given',
      }),
    }),
  })
  .meta({ id: 'RotateSecret' });

function rotateRoute(gateway: Gateway): Route {
  return route({
    operationId: 'rotateWebhookSecret',
    method: 'post',
    path: '/webhooks/:webhookId/rotate-secret',
    versionedOnly,
    scope: 'webhooks:write',
    portal: 'manage',
    audit: { action: 'webhook.secret_rotated', target: 'webhook' },
    tag,
    summary: 'Rotate the secret of a webhook',
    description:
      'During the grace period `webhook-signature` holds a signature of each secret. The HMAC header uses the new secret at once, unless the webhook has its own `hmacSecret`. Another rotation ends the grace period of the one before. With the `secret` that the webhook has already, nothing changes but a grace period that would last longer than `graceSeconds`.',
    body: rotateBody,
    isBodyOptional: true,
    response: { status: 200, message: 'Secret rotated', data: webhookSchema },
    errors: ['not_found'],
    creation: { showsSecrets: true },
    async handle({ caller, params: { webhookId = '' }, body: { value }, newId, seed }) {
      const { companyId } = caller;
      const { secret: given, graceSeconds } = value;
      const secret = given ?? secretFromBytes(await seed());
      const rotation = { id: newId('rot'), companyId, webhookId, secret, graceSeconds };
      const { before, after } = await rotateSecret(gateway, rotation);
      const now = { ...auditedFields(after), graceSeconds };
      return {
        data: shownTo(caller, describeWebhook)(after),
        changed: { before: auditedFields(before), after: now },
      };
    },
  });
}

const testBody = z
  .object(
    optionalFields({
      eventType: eventType.meta({
        description:
          'The message has this event type of the catalogue, and its `example` as payload',
      }),
    }),
  )
  .meta({ id: 'TestWebhook' });

function testWebhook(gateway: Gateway): Route {
  return route({
    operationId: 'testWebhook',
    method: 'post',
    path: '/webhooks/:webhookId/test',
    versionedOnly,
    scope: 'messages:write',
    portal: 'manage',
    audit: { action: 'webhook.tested', target: 'webhook' },
    tag,
    summary: 'Send a test message to a webhook',
    description:
      'Sends a small message and returns its delivery. `GET /api/v1/deliveries/{id}` shows how it ended.',
    body: testBody,
    isBodyOptional: true,
    response: { status: 202, message: 'Test message accepted', data: deliverySchema },
    errors: ['not_found'],
    creation: {},
    async handle({ params: { webhookId = '' }, ...request }) {
      const key = request.header('idempotency-key') && testKeyOf(request.newId('msg'));
      const { caller, requestId, body, reserve, nextSlice } = request;
      const { companyId } = caller;
      const idempotency = idempotencyOf(key, body.bytes);
      const { eventType = null } = body.value;
      const of = { companyId, webhookId, eventType };
      const asked = { ...of, requestId, idempotency, reserve, nextSlice };
      const sent = await sendTestMessage(gateway, asked);
      return { data: describeDelivery(sent.source, sent.sentHeaders) };
    },
  });
}

/** The idempotency key of a test message. None of a client has a line feed. */
const testKeyOf = (id: string): string => `test\n${id}`;

function webhookHealth(gateway: Gateway): Route {
  return route({
    operationId: 'getWebhookHealth',
    method: 'get',
    path: '/webhooks/:webhookId/health',
    versionedOnly,
    scope: 'read',
    portal: 'view',
    tag,
    summary: 'Get the health of a webhook',
    description:
      'Examines the attempts of the newest messages of the webhook, at most 200 messages.',
    response: { status: 200, message: 'Health found', data: healthSchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { webhookId = '' } }) {
      const health = await readHealth(
        { ...gateway, holds: gateway.holdStates },
        companyId,
        webhookId,
      );
      if (!health) throw notFound('webhook');
      return { data: { ...health, held: describeHold(health.held) } };
    },
  });
}
