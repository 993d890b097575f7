import type { AuditedFields } from '@posthorn/domain/audit.ts';
import {
  auditedObject,
  createShape,
  responseFields,
  responseShape,
  updateShape,
} from '@posthorn/domain/object-fields.ts';
import { PROJECT_FIELDS } from '@posthorn/domain/project-fields.ts';
import type { Changed } from '@posthorn/platform/mongo/company-documents.ts';
import type { ProjectDocument } from '@posthorn/platform/mongo/documents.ts';
import { z } from 'zod';
import { notFound, nullIf404 } from '../api-error.ts';
import type { Gateway } from '../gateway.ts';
import { type ApiResponse, route, type Route, type Upsert, upsert } from '../http/route.ts';
import { describeParts } from '../http/send-json.ts';
import { inSlices } from '../limits/slices.ts';
import { upsertByUid, uidTaken } from '../projects/uids.ts';
import { idField, isoTime, limit, skip, timeField, upsertQuery } from './fields.ts';

const { environment, ...createdShape } = responseShape(PROJECT_FIELDS);

/** The create response has no company and environment (docs/contract.md C5.4). */
const createdProjectSchema = z
  .object({ id: idField('proj'), ...createdShape, createdAt: timeField, updatedAt: timeField })
  .meta({ id: 'CreatedProject' });

const projectSchema = z
  .object({ ...createdProjectSchema.shape, company: idField('comp'), environment })
  .meta({ id: 'Project' });

function describeProject(document: ProjectDocument): z.infer<typeof projectSchema> {
  const { _id: id, companyId: company, createdAt, updatedAt } = document;
  return {
    id,
    ...responseFields(PROJECT_FIELDS, document),
    createdAt: isoTime(createdAt),
    updatedAt: isoTime(updatedAt),
    company,
  };
}

function describeCreatedProject(document: ProjectDocument): z.infer<typeof createdProjectSchema> {
  const { company: _company, environment: _environment, ...shown } = describeProject(document);
  return shown;
}

const createBody = z.object(createShape(PROJECT_FIELDS)).meta({ id: 'CreateProject' });
const updateBody = z.object(updateShape(PROJECT_FIELDS)).meta({ id: 'UpdateProject' });

/** Two parts of 12 projects of up to 21 kB each, as objects and as text. */
const LONG_LIST_BYTES = 1_048_576;

const listQuery = z.object({ limit: limit(1_000, 1_000), skip });

const tag = 'Projects';
const path = '/projects/:projectId';
const isVersionedInContract = true;

/** See docs/contract.md C5. */
export function projectRoutes(gateway: Gateway): Route[] {
  return [
    createProject(gateway),
    listProjects(gateway),
    getProject(gateway),
    updateProject(gateway),
    deleteProject(gateway),
  ];
}

function createProject(gateway: Gateway): Route {
  return route({
    operationId: 'createProject',
    method: 'post',
    path: '/projects',
    scope: 'webhooks:write',
    isForCompanyOnly: true,
    audit: { action: 'project.created', target: 'project' },
    tag,
    summary: 'Create a project',
    body: createBody,
    response: { status: 201, message: 'Project created', data: createdProjectSchema },
    errors: ['uid_taken', 'quota_exceeded'],
    creation: {
      async find({ caller: { companyId }, newId }) {
        const found = await gateway.projects.get(companyId, newId('proj')).catch(nullIf404);
        return found && { data: describeCreatedProject(found) };
      },
    },
    async handle({ caller: { companyId }, body: { value }, newId }) {
      const created = await gateway.projects.create(companyId, { ...value, id: newId('proj') });
      return { data: describeCreatedProject(created) };
    },
  });
}

function listProjects(gateway: Gateway): Route {
  return route({
    operationId: 'listProjects',
    method: 'get',
    path: '/projects',
    scope: 'read',
    tag,
    summary: 'List the projects, oldest first',
    isVersionedInContract,
    needsCompanyId: true,
    query: listQuery,
    response: { status: 200, message: 'Projects found', data: z.array(projectSchema) },
    async handle({ caller: { companyId, appId }, query, reserve, nextSlice }) {
      const id = appId === null ? undefined : (await gateway.apps.get(companyId, appId)).projectId;
      const parts = inSlices(gateway.projects.list(companyId, { ...query, id }), nextSlice);
      const shown = { describe: describeProject, bytes: LONG_LIST_BYTES, reserve };
      return { pages: describeParts(parts, shown) };
    },
  });
}

function getProject(gateway: Gateway): Route {
  return route({
    operationId: 'getProject',
    method: 'get',
    path,
    isVersionedInContract,
    scope: 'read',
    tag,
    summary: 'Get a project',
    response: { status: 200, message: 'Project found', data: projectSchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { projectId = '' } }) {
      return { data: describeProject(await gateway.projects.get(companyId, projectId)) };
    },
  });
}

function updateProject(gateway: Gateway): Route {
  return route({
    operationId: 'updateProject',
    method: 'put',
    path,
    isVersionedInContract,
    scope: 'webhooks:write',
    isForCompanyOnly: true,
    audit: { action: 'project.updated', target: 'project' },
    tag,
    summary: 'Update a project',
    description: 'Fields that are left out keep their values, and null takes one away.',
    query: upsertQuery,
    body: updateBody,
    isBodyOptional: true,
    response: { status: 200, message: 'Project updated', data: projectSchema },
    errors: ['not_found', 'uid_taken'],
    upsert: upsertProject(gateway),
    async handle({ caller: { companyId }, params: { projectId = '' }, body: { value } }) {
      return describeUpdate(await gateway.projects.update(companyId, projectId, value));
    },
  });
}

function upsertProject({ uids, projects }: Gateway): Upsert {
  return upsert({
    body: createBody,
    action: 'project.created',
    response: { status: 201, message: 'Project created', data: projectSchema },
    errors: ['quota_exceeded'],
    isForCompanyOnly: true,
    async handle({ caller: { companyId }, body, newId }, uid) {
      const { value } = body;
      const own = { companyId, kind: 'project', uid } as const;
      return upsertByUid<ApiResponse>(uids, own, {
        given: value.uid,
        async create() {
          const created = await projects.create(companyId, { ...value, uid, id: newId('proj') });
          return { data: describeProject(created) };
        },
        async update(id) {
          const { environment } = await projects.get(companyId, id);
          if (value.environment !== undefined && value.environment !== environment)
            throw uidTaken(own);
          return describeUpdate(await projects.update(companyId, id, body.as(updateBody)));
        },
      });
    },
  });
}

function describeUpdate({ before, after }: Changed<ProjectDocument>): ApiResponse {
  const changed = { before: fieldsOfProject(before), after: fieldsOfProject(after) };
  return { data: describeProject(after), changed };
}

function deleteProject(gateway: Gateway): Route {
  return route({
    operationId: 'deleteProject',
    method: 'delete',
    path,
    isVersionedInContract,
    scope: 'webhooks:write',
    isForCompanyOnly: true,
    audit: { action: 'project.deleted', target: 'project' },
    tag,
    summary: 'Delete a project',
    description:
      'Deletes its apps and webhooks too, and cancels their pending deliveries. Messages and deliveries stay readable.',
    response: { status: 200, message: 'Project deleted' },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { projectId: id = '' } }) {
      const project = await gateway.projects.get(companyId, id);
      if (!(await gateway.remove({ companyId, kind: 'project', id }))) throw notFound('project');
      return { changed: { before: fieldsOfProject(project), after: {} } };
    },
  });
}

const fieldsOfProject = (project: ProjectDocument): AuditedFields =>
  auditedObject(PROJECT_FIELDS, project);
