import type { IdPrefix } from '@posthorn/domain/ids.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import type { AppDocument } from '@posthorn/platform/mongo/documents.ts';
import type { mongo } from 'mongoose';
import { z } from 'zod';
import { notFound } from '../http/api-error.ts';
import { bodyRoute, type Route } from '../http/route.ts';
import { description, environment, idText, name } from './fields.ts';

const createBody = z.object({
  name,
  description: description.default(''),
  projectId: idText,
  environment: environment.default('development'),
});

export interface AppRouteDeps {
  db: mongo.Db;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

export function appRoutes({ db, newId, nowMs }: AppRouteDeps): Route[] {
  const projects = collection(db, 'projects');
  const apps = collection(db, 'apps');
  return [
    bodyRoute({
      method: 'post',
      path: '/apps',
      body: createBody,
      async handle({ caller: { companyId }, body: { value } }) {
        const project = await projects.findOne({ _id: value.projectId, companyId });
        if (!project) throw notFound('project');
        const now = new Date(nowMs());
        const app: AppDocument = {
          _id: newId('app'),
          companyId,
          ...value,
          createdAt: now,
          updatedAt: now,
        };
        await apps.insertOne(app);
        return { status: 201, message: 'App created', data: describe(app) };
      },
    }),
  ];
}

/** The contract does not return the project of an app. */
function describe({ _id, name, description, environment, createdAt, updatedAt }: AppDocument) {
  return { id: _id, name, description, environment, createdAt, updatedAt };
}
