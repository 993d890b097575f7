import type { AuditedFields } from '@posthorn/domain/audit/changes.ts';
import { STORE_PAYLOADS } from '@posthorn/domain/message/not-stored.ts';
import type { AppDocument } from '@posthorn/platform/mongo/documents/documents.ts';
import { z } from 'zod';
import { notFound } from '../../http/api-error.ts';
import { appSchema, describeApp } from '../../http/responses/app.ts';
import { route, type Route } from '../../http/request/route.ts';
import type { Apps } from '../../projects/apps.ts';
import type { RemoveTree } from '../../removal/remove-tree.ts';
import { description, environment, idText, limit, name, skip } from './fields.ts';

const storage = {
  storeResponses: z.boolean('must be true or false').exactOptional().meta({
    description:
      'Whether attempts are stored with the response of the endpoint. True when left out',
  }),
  storePayloads: z
    .enum(STORE_PAYLOADS, `must be one of ${STORE_PAYLOADS.join(', ')}`)
    .exactOptional()
    .meta({
      description:
        '`until-delivered` erases the payload of a message once every delivery is `delivered`. `retained` when left out',
    }),
};

const createBody = z
  .object({
    name,
    description: description.default(''),
    projectId: idText('proj'),
    environment: environment.default('development'),
    ...storage,
  })
  .meta({ id: 'CreateApp' });

const updateBody = z
  .object({
    name: name.exactOptional(),
    description: description.exactOptional(),
    ...storage,
  })
  .meta({ id: 'UpdateApp' });

const listQuery = z.object({
  projectId: idText('proj'),
  environment: environment.optional(),
  limit: limit(100, 10),
  skip,
});

export interface AppRouteDeps {
  apps: Apps;
  remove: RemoveTree;
}

const tag = 'Apps';
const path = '/apps/:appId';
const needsCompanyId = true;

/** See docs/contract.md C5. */
export function appRoutes(deps: AppRouteDeps): Route[] {
  return [createApp(deps), listApps(deps), getApp(deps), updateApp(deps), deleteApp(deps)];
}

function createApp(deps: AppRouteDeps): Route {
  return route({
    method: 'post',
    path: '/apps',
    scope: 'webhooks:write',
    isForCompanyOnly: true,
    audit: { action: 'app.created', target: 'app' },
    tag,
    summary: 'Create an app in a project',
    body: createBody,
    response: { status: 201, message: 'App created', data: appSchema },
    errors: ['not_found', 'quota_exceeded'],
    async handle({ caller: { companyId }, body: { value } }) {
      return { data: describeApp(await deps.apps.create(companyId, value)) };
    },
  });
}

function listApps(deps: AppRouteDeps): Route {
  return route({
    method: 'get',
    path: '/apps',
    needsCompanyId,
    scope: 'read',
    tag,
    summary: 'List the apps of a project, oldest first',
    query: listQuery,
    response: { status: 200, message: 'Apps found', data: z.array(appSchema) },
    errors: ['not_found'],
    async handle({ caller: { companyId, appId }, query }) {
      const page = await deps.apps.list(companyId, { ...query, id: appId ?? undefined });
      return { data: page.map(describeApp) };
    },
  });
}

function getApp(deps: AppRouteDeps): Route {
  return route({
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
      return { data: describeApp(await deps.apps.get(companyId, appId)) };
    },
  });
}

function updateApp(deps: AppRouteDeps): Route {
  return route({
    method: 'put',
    path,
    needsCompanyId,
    scope: 'webhooks:write',
    audit: { action: 'app.updated', target: 'app' },
    tag,
    summary: 'Update an app',
    description: 'Fields that are left out keep their values.',
    body: updateBody,
    isBodyOptional: true,
    response: { status: 200, message: 'App updated', data: appSchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { appId = '' }, body: { value } }) {
      const { before, after } = await deps.apps.update(companyId, appId, value);
      const changed = { before: fieldsOfApp(before), after: fieldsOfApp(after) };
      return { data: describeApp(after), changed };
    },
  });
}

function deleteApp(deps: AppRouteDeps): Route {
  return route({
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
      const app = await deps.apps.get(companyId, id);
      if (!(await deps.remove({ companyId, kind: 'app', id }))) throw notFound('app');
      return { changed: { before: fieldsOfApp(app), after: {} } };
    },
  });
}

function fieldsOfApp(app: AppDocument): AuditedFields {
  const { name, description, environment, projectId, storeResponses, storePayloads } = app;
  return { name, description, environment, projectId, storeResponses, storePayloads };
}
