import type { IdPrefix } from '@posthorn/domain/ids.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import type { ProjectDocument } from '@posthorn/platform/mongo/documents.ts';
import type { mongo } from 'mongoose';
import { z } from 'zod';
import { bodyRoute, type Route } from '../http/route.ts';
import { description, environment, name } from './fields.ts';

const createBody = z.object({
  name,
  description: description.optional(),
  environment: environment.default('development'),
});

export interface ProjectDeps {
  db: mongo.Db;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

export function projectRoutes({ db, newId, nowMs }: ProjectDeps): Route[] {
  const projects = collection(db, 'projects');
  return [
    bodyRoute({
      method: 'post',
      path: '/projects',
      body: createBody,
      async handle({ caller, body: { value } }) {
        const now = new Date(nowMs());
        const project: ProjectDocument = {
          _id: newId('proj'),
          companyId: caller.companyId,
          name: value.name,
          description: value.description ?? null,
          environment: value.environment,
          createdAt: now,
          updatedAt: now,
        };
        await projects.insertOne(project);
        return { status: 201, message: 'Project created', data: describeCreated(project) };
      },
    }),
  ];
}

/** The contract leaves company and environment out of the create response. */
function describeCreated({ _id, name, description, createdAt, updatedAt }: ProjectDocument) {
  return { id: _id, name, ...(description !== null && { description }), createdAt, updatedAt };
}
