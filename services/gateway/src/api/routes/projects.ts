import type { IdPrefix } from '@posthorn/domain/ids.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { ProjectDocument } from '@posthorn/platform/mongo/documents.ts';
import type { mongo } from 'mongoose';
import { z } from 'zod';
import {
  createdProject,
  describeCreatedProject,
  describeProject,
  project,
} from '../../http/answers/project.ts';
import { notFound } from '../../http/api-error.ts';
import { route, type Route } from '../../http/route.ts';
import type { RemoveTree } from '../../removal/remove-tree.ts';
import { description, environment, isEmptyUpdate, limit, name, skip } from './fields.ts';

const createBody = z
  .object({
    name,
    description: description.optional(),
    environment: environment.default('development'),
  })
  .meta({ id: 'CreateProject' });

const updateBody = z
  .object({ name: name.exactOptional(), description: description.exactOptional() })
  .meta({ id: 'UpdateProject' });

const listQuery = z.object({ limit: limit(1_000, 1_000), skip });

export interface ProjectDeps {
  db: mongo.Db;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  remove: RemoveTree;
}

const tag = 'Projects';
const path = '/projects/:projectId';
const isVersionedInContract = true;

export function projectRoutes(deps: ProjectDeps): Route[] {
  return [
    createProject(deps),
    listProjects(deps),
    getProject(deps),
    updateProject(deps),
    deleteProject(deps),
  ];
}

function createProject({ db, newId, nowMs }: ProjectDeps): Route {
  return route({
    method: 'post',
    path: '/projects',
    tag,
    summary: 'Create a project',
    body: createBody,
    answer: { status: 201, message: 'Project created', data: createdProject },
    async handle({ caller: { companyId }, body: { value } }) {
      const now = new Date(nowMs());
      const made: ProjectDocument = {
        _id: newId('proj'),
        companyId,
        name: value.name,
        description: value.description ?? null,
        environment: value.environment,
        createdAt: now,
        updatedAt: now,
      };
      await documentsOf(db, 'projects', companyId).insert(made);
      return { data: describeCreatedProject(made) };
    },
  });
}

function listProjects({ db }: ProjectDeps): Route {
  return route({
    method: 'get',
    path: '/projects',
    tag,
    summary: 'List the projects, oldest first',
    isVersionedInContract,
    needsCompanyId: true,
    query: listQuery,
    answer: { status: 200, message: 'Projects found', data: z.array(project) },
    async handle({ caller: { companyId }, query }) {
      const found = documentsOf(db, 'projects', companyId).find({}).sort({ _id: 1 });
      const page = await found.skip(query.skip).limit(query.limit).toArray();
      return { data: page.map(describeProject) };
    },
  });
}

function getProject({ db }: ProjectDeps): Route {
  return route({
    method: 'get',
    path,
    isVersionedInContract,
    tag,
    summary: 'Get a project',
    answer: { status: 200, message: 'Project found', data: project },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { projectId: _id = '' } }) {
      const found = await documentsOf(db, 'projects', companyId).findOne({ _id });
      if (!found) throw notFound('project');
      return { data: describeProject(found) };
    },
  });
}

function updateProject({ db, nowMs }: ProjectDeps): Route {
  return route({
    method: 'put',
    path,
    isVersionedInContract,
    tag,
    summary: 'Change a project',
    description: 'Fields that are left out stay as they are.',
    body: updateBody,
    isBodyOptional: true,
    answer: { status: 200, message: 'Project updated', data: project },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { projectId: _id = '' }, body: { value } }) {
      const projects = documentsOf(db, 'projects', companyId);
      const changes = { ...value, updatedAt: new Date(nowMs()) };
      const found = isEmptyUpdate(value)
        ? await projects.findOne({ _id })
        : await projects.updateOne({ _id }, { $set: changes });
      if (!found) throw notFound('project');
      return { data: describeProject(found) };
    },
  });
}

function deleteProject({ remove }: ProjectDeps): Route {
  return route({
    method: 'delete',
    path,
    isVersionedInContract,
    tag,
    summary: 'Delete a project',
    description:
      'Takes its apps and webhooks with it and cancels their pending deliveries. Messages and deliveries stay readable.',
    answer: { status: 200, message: 'Project deleted' },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { projectId: id = '' } }) {
      if (!(await remove({ companyId, kind: 'project', id }))) throw notFound('project');
      return {};
    },
  });
}
