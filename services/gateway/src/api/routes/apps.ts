import type { IdPrefix } from '@posthorn/domain/ids.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { AppDocument } from '@posthorn/platform/mongo/documents.ts';
import type { mongo } from 'mongoose';
import { z } from 'zod';
import { app, describeApp } from '../../http/answers/app.ts';
import { notFound } from '../../http/api-error.ts';
import { route, type Route } from '../../http/route.ts';
import type { RemoveTree } from '../../removal/remove-tree.ts';
import { description, environment, idText, isEmptyUpdate, limit, name, skip } from './fields.ts';

const createBody = z
  .object({
    name,
    description: description.default(''),
    projectId: idText('proj'),
    environment: environment.default('development'),
  })
  .meta({ id: 'CreateApp' });

const updateBody = z
  .object({ name: name.exactOptional(), description: description.exactOptional() })
  .meta({ id: 'UpdateApp' });

const listQuery = z.object({
  projectId: idText('proj'),
  environment: environment.optional(),
  limit: limit(100, 10),
  skip,
});

export interface AppRouteDeps {
  db: mongo.Db;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  remove: RemoveTree;
}

const tag = 'Apps';
const path = '/apps/:appId';
const needsCompanyId = true;

export function appRoutes(deps: AppRouteDeps): Route[] {
  return [createApp(deps), listApps(deps), getApp(deps), updateApp(deps), deleteApp(deps)];
}

function createApp({ db, newId, nowMs }: AppRouteDeps): Route {
  return route({
    method: 'post',
    path: '/apps',
    tag,
    summary: 'Create an app in a project',
    body: createBody,
    answer: { status: 201, message: 'App created', data: app },
    errors: ['not_found'],
    async handle({ caller: { companyId }, body: { value } }) {
      await requireProject(db, companyId, value.projectId);
      const now = new Date(nowMs());
      const times = { createdAt: now, updatedAt: now };
      const made: AppDocument = { _id: newId('app'), companyId, ...value, ...times };
      const apps = documentsOf(db, 'apps', companyId);
      await apps.insert(made);
      await requireProject(db, companyId, value.projectId).catch(async (error: unknown) => {
        // The project was deleted while the app was made: no app may outlive it.
        await apps.deleteMany({ _id: made._id });
        throw error;
      });
      return { data: describeApp(made) };
    },
  });
}

async function requireProject(db: mongo.Db, companyId: string, _id: string): Promise<void> {
  const found = await documentsOf(db, 'projects', companyId).findOne({ _id });
  if (!found) throw notFound('project');
}

function listApps({ db }: AppRouteDeps): Route {
  return route({
    method: 'get',
    path: '/apps',
    needsCompanyId,
    tag,
    summary: 'List the apps of a project, oldest first',
    query: listQuery,
    answer: { status: 200, message: 'Apps found', data: z.array(app) },
    errors: ['not_found'],
    async handle({ caller: { companyId }, query }) {
      const { projectId, environment: wanted } = query;
      await requireProject(db, companyId, projectId);
      const filter = { projectId, ...(wanted && { environment: wanted }) };
      const found = documentsOf(db, 'apps', companyId).find(filter).sort({ _id: 1 });
      const page = await found.skip(query.skip).limit(query.limit).toArray();
      return { data: page.map(describeApp) };
    },
  });
}

function getApp({ db }: AppRouteDeps): Route {
  return route({
    method: 'get',
    path,
    needsCompanyId,
    tag,
    summary: 'Get an app',
    answer: { status: 200, message: 'App found', data: app },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { appId: _id = '' } }) {
      const found = await documentsOf(db, 'apps', companyId).findOne({ _id });
      if (!found) throw notFound('app');
      return { data: describeApp(found) };
    },
  });
}

function updateApp({ db, nowMs }: AppRouteDeps): Route {
  return route({
    method: 'put',
    path,
    needsCompanyId,
    tag,
    summary: 'Change an app',
    description: 'Fields that are left out stay as they are.',
    body: updateBody,
    isBodyOptional: true,
    answer: { status: 200, message: 'App updated', data: app },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { appId: _id = '' }, body: { value } }) {
      const apps = documentsOf(db, 'apps', companyId);
      const changes = { ...value, updatedAt: new Date(nowMs()) };
      const found = isEmptyUpdate(value)
        ? await apps.findOne({ _id })
        : await apps.updateOne({ _id }, { $set: changes });
      if (!found) throw notFound('app');
      return { data: describeApp(found) };
    },
  });
}

function deleteApp({ remove }: AppRouteDeps): Route {
  return route({
    method: 'delete',
    path,
    needsCompanyId,
    tag,
    summary: 'Delete an app',
    description: 'Takes its webhooks with it and cancels their pending deliveries.',
    answer: { status: 200, message: 'App deleted' },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { appId: id = '' } }) {
      if (!(await remove({ companyId, kind: 'app', id }))) throw notFound('app');
      return {};
    },
  });
}
