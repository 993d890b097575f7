import { APP_FIELDS } from '@posthorn/domain/app-fields.ts';
import type { AuditedFields } from '@posthorn/domain/audit.ts';
import {
  auditedObject,
  createShape,
  responseFields,
  responseShape,
  updateShape,
} from '@posthorn/domain/object-fields.ts';
import type { Changed } from '@posthorn/platform/mongo/company-documents.ts';
import type { AppDocument } from '@posthorn/platform/mongo/documents.ts';
import { z } from 'zod';
import type { Gateway } from '../gateway.ts';
import { countApps } from '../history/counts.ts';
import { forOneApp, notFound, nullIf404 } from '../api-error.ts';
import { type ApiResponse, route, type Route, type Upsert, upsert } from '../http/route.ts';
import { describeParts } from '../http/send-json.ts';
import { inSlices } from '../limits/slices.ts';
import { findApps } from '../projects/apps.ts';
import { upsertByUid, uidTaken } from '../projects/uids.ts';
import {
  cursor,
  describeHold,
  environment,
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

export const appSchema = z
  .object({
    id: idField('app'),
    ...responseShape(APP_FIELDS),
    createdAt: timeField,
    updatedAt: timeField,
    held: heldField,
  })
  .meta({ id: 'App' });

export function describeApp(document: AppDocument): z.infer<typeof appSchema> {
  const { _id: id, createdAt, updatedAt, held = null } = document;
  return {
    id,
    ...responseFields(APP_FIELDS, document),
    createdAt: isoTime(createdAt),
    updatedAt: isoTime(updatedAt),
    held: describeHold(held),
  };
}

const createBody = z.object(createShape(APP_FIELDS)).meta({ id: 'CreateApp' });
const updateBody = z.object(updateShape(APP_FIELDS)).meta({ id: 'UpdateApp' });

/** Two parts of 12 apps of up to 21 kB each, as objects and as text. */
const LONG_LIST_BYTES = 1_048_576;

const listQuery = z.object({
  projectId: idText('proj'),
  environment: environment.optional(),
  limit: limit(100, 10),
  skip,
});

const tag = 'Apps';
const path = '/apps/:appId';
const needsCompanyId = true;

/** See docs/contract.md C5. */
export function appRoutes(gateway: Gateway): Route[] {
  return [
    createApp(gateway),
    listApps(gateway),
    getApp(gateway),
    updateApp(gateway),
    deleteApp(gateway),
  ];
}

function createApp(gateway: Gateway): Route {
  return route({
    operationId: 'createApp',
    method: 'post',
    path: '/apps',
    scope: 'webhooks:write',
    isForCompanyOnly: true,
    audit: { action: 'app.created', target: 'app' },
    tag,
    summary: 'Create an app in a project',
    body: createBody,
    response: { status: 201, message: 'App created', data: appSchema },
    errors: ['not_found', 'uid_taken', 'quota_exceeded'],
    creation: {
      readsFirst: true,
      async find({ caller: { companyId }, newId }) {
        const found = await gateway.apps.get(companyId, newId('app')).catch(nullIf404);
        return found && { data: describeApp(found) };
      },
    },
    async handle({ caller: { companyId }, body: { value }, newId, isRecorded }) {
      const app = { ...value, id: newId('app') };
      const created = await gateway.apps.create(companyId, app, isRecorded);
      return { data: describeApp(created) };
    },
  });
}

function listApps(gateway: Gateway): Route {
  return route({
    operationId: 'listApps',
    method: 'get',
    path: '/apps',
    needsCompanyId,
    scope: 'read',
    tag,
    summary: 'List the apps of a project, oldest first',
    query: listQuery,
    response: { status: 200, message: 'Apps found', data: z.array(appSchema) },
    errors: ['not_found'],
    async handle({ caller: { companyId, appId }, query, reserve, nextSlice }) {
      const parts = await gateway.apps.list(companyId, { ...query, id: appId ?? undefined });
      const shown = { describe: describeApp, bytes: LONG_LIST_BYTES, reserve };
      return { pages: describeParts(inSlices(parts, nextSlice), shown) };
    },
  });
}

function getApp(gateway: Gateway): Route {
  return route({
    operationId: 'getApp',
    method: 'get',
    path,
    needsCompanyId,
    scope: 'read',
    portal: 'view',
    tag,
    summary: 'Get an app',
    response: { status: 200, message: 'App found', data: appSchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { appId = '' } }) {
      return { data: describeApp(await gateway.apps.get(companyId, appId)) };
    },
  });
}

function updateApp(gateway: Gateway): Route {
  return route({
    operationId: 'updateApp',
    method: 'put',
    path,
    needsCompanyId,
    scope: 'webhooks:write',
    audit: { action: 'app.updated', target: 'app' },
    tag,
    summary: 'Update an app',
    description: 'Fields that are left out keep their values, and null takes one away.',
    query: upsertQuery,
    body: updateBody,
    isBodyOptional: true,
    response: { status: 200, message: 'App updated', data: appSchema },
    errors: ['not_found', 'uid_taken'],
    upsert: upsertApp(gateway),
    async handle({ caller, params: { appId = '' }, body: { value } }) {
      // A key of one app must not take over what others address by a uid.
      if (caller.appId !== null && value.uid !== undefined) throw forOneApp();
      return describeUpdate(await gateway.apps.update(caller.companyId, appId, value));
    },
  });
}

function upsertApp({ uids, apps }: Gateway): Upsert {
  return upsert({
    body: createBody,
    action: 'app.created',
    response: { status: 201, message: 'App created', data: appSchema },
    errors: ['quota_exceeded'],
    isForCompanyOnly: true,
    async handle({ caller: { companyId }, body, newId, isRecorded }, uid) {
      const { value } = body;
      const own = { companyId, kind: 'app', uid } as const;
      return upsertByUid<ApiResponse>(uids, own, {
        given: value.uid,
        async create() {
          const app = { ...value, uid, id: newId('app') };
          const created = await apps.create(companyId, app, isRecorded);
          return { data: describeApp(created) };
        },
        async update(id) {
          if (!isSameOwner(await apps.get(companyId, id), value)) throw uidTaken(own);
          return describeUpdate(await apps.update(companyId, id, body.as(updateBody)));
        },
      });
    },
  });
}

/** Neither the project nor the environment of an app ever changes. */
function isSameOwner(app: AppDocument, given: z.infer<typeof createBody>): boolean {
  const { projectId, environment = app.environment } = given;
  return app.projectId === projectId && app.environment === environment;
}

function describeUpdate({ before, after }: Changed<AppDocument>): ApiResponse {
  const changed = { before: fieldsOfApp(before), after: fieldsOfApp(after) };
  return { data: describeApp(after), changed };
}

function deleteApp(gateway: Gateway): Route {
  return route({
    operationId: 'deleteApp',
    method: 'delete',
    path,
    needsCompanyId,
    scope: 'webhooks:write',
    audit: { action: 'app.deleted', target: 'app' },
    tag,
    summary: 'Delete an app',
    description:
      'Deletes its webhooks too, and cancels their pending deliveries. Messages and deliveries stay readable.',
    response: { status: 200, message: 'App deleted' },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { appId: id = '' } }) {
      const app = await gateway.apps.get(companyId, id);
      if (!(await gateway.remove({ companyId, kind: 'app', id }))) throw notFound('app');
      return { changed: { before: fieldsOfApp(app), after: {} } };
    },
  });
}

const fieldsOfApp = (app: AppDocument): AuditedFields => auditedObject(APP_FIELDS, app);

const MAX_APPS = 20;

const appCountsSchema = z
  .object({
    appId: idField('app'),
    webhooks: z.int().meta({ description: 'Counted up to 10,000' }),
    succeeded: z.int().meta({ description: 'Attempts of the last 24 hours that succeeded' }),
    failed: z.int().meta({ description: 'Attempts of the last 24 hours that failed' }),
  })
  .meta({ id: 'AppCounts' });

/** See docs/contract.md C21.9. */
export function appCountsRoute(gateway: Gateway): Route {
  return route({
    operationId: 'getAppCounts',
    method: 'get',
    path: '/app-counts',
    versionedOnly: true,
    scope: 'read',
    tag: 'Overview',
    summary: 'Count the webhooks of apps and their attempts of the last 24 hours',
    description: 'In no order. Ids that do not exist are left out.',
    query: z.object({ ids: idList(MAX_APPS) }),
    idsOf: 'app',
    response: { status: 200, message: 'Apps counted', data: z.array(appCountsSchema) },
    async handle({ caller: { companyId, appId: onlyOf }, query: { ids } }) {
      const shown = idsIn(ids).filter((id) => onlyOf === null || id === onlyOf);
      return { data: await countApps(gateway, companyId, shown) };
    },
  });
}

const MAX_FOUND_IDS = 100;

const findQuery = z.object({
  text: text(1, 128).optional().meta({
    description: 'Part of the name, in any case, or the whole id or uid',
    example: 'orders',
  }),
  ids: idList(MAX_FOUND_IDS).optional(),
  limit: limit(100, 20),
  cursor: cursor('app').optional(),
});

const foundAppSchema = z
  .object({
    id: idField('app'),
    uid: uid.nullable(),
    name: z.string(),
    environment: z.enum(['development', 'production']),
    held: heldField,
    projectId: idField('proj'),
    projectName: z.string(),
  })
  .meta({ id: 'FoundApp' });

/** See docs/contract.md C21.7. */
export function findAppsRoute({ db }: Gateway): Route {
  return route({
    operationId: 'findApps',
    method: 'get',
    path: '/find-apps',
    versionedOnly: true,
    scope: 'read',
    tag: 'Overview',
    summary: 'Find apps of any project by name or id, oldest first',
    description:
      'One request looks at 1,000 apps. A page may therefore hold fewer entries than `limit`, or none, although `nextCursor` is not null. Ids that do not exist are left out.',
    query: findQuery,
    idsOf: 'app',
    response: {
      status: 200,
      message: 'Apps found',
      hasCursor: true,
      data: z.array(foundAppSchema),
    },
    async handle({ caller: { companyId, appId }, query }) {
      const { cursor: afterId, ids, ...search } = query;
      const wanted = {
        ...search,
        ids: ids === undefined ? undefined : idsIn(ids),
        onlyId: appId ?? undefined,
        afterId,
      };
      const { apps, nextCursor } = await findApps(db, companyId, wanted);
      const data = apps.map((each) => ({ ...each, held: describeHold(each.held) }));
      return { data, nextCursor };
    },
  });
}
