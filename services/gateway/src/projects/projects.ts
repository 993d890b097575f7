import { type Changed, documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { Environment, ProjectDocument } from '@posthorn/platform/mongo/documents.ts';
import { readInParts } from '@posthorn/platform/mongo/read-in-parts.ts';
import type { mongo } from 'mongoose';
import { foundOr404 } from '../api-error.ts';
import type { Quotas } from './quotas.ts';

interface ProjectsDeps {
  db: mongo.Db;
  quotas: Quotas;
  nowMs: () => number;
}

interface NewProject {
  id: string;
  name: string;
  description?: string | undefined;
  environment: Environment;
}

interface ProjectChanges {
  name?: string;
  description?: string;
}

/** A part of a list that is ordered by age. */
export interface ListPage {
  skip: number;
  limit: number;
}

/** The projects of a company. Functions that take a project id throw ApiError 404 for an unknown one. */
export interface Projects {
  /** Throws ApiError 409 when the company has as many as it may. */
  create: (companyId: string, project: NewProject) => Promise<ProjectDocument>;
  /** In parts, oldest first. With an `id`, only the project that has it. */
  list: (
    companyId: string,
    page: ListPage & { id?: string | undefined },
  ) => AsyncIterable<ProjectDocument[]>;
  get: (companyId: string, projectId: string) => Promise<ProjectDocument>;
  update: (
    companyId: string,
    projectId: string,
    changes: ProjectChanges,
  ) => Promise<Changed<ProjectDocument>>;
}

/** A project has up to 5 kB, nearly all in its description: 250 kB, about 4 ms of CPU time with its JSON. */
const PARTS = { batch: 50, part: 50 };

export function createProjects({ db, quotas, nowMs }: ProjectsDeps): Projects {
  const projectsOf = (companyId: string) => documentsOf(db, 'projects', companyId);
  return {
    async create(companyId, { id: _id, name, description = null, environment }) {
      const now = new Date(nowMs());
      const project: ProjectDocument = {
        _id,
        companyId,
        name,
        description,
        environment,
        createdAt: now,
        updatedAt: now,
      };
      const projects = projectsOf(companyId);
      return quotas.createWithin({
        setting: 'QUOTA_PROJECTS_PER_COMPANY',
        companyId,
        ownerId: companyId,
        count: (upTo) => projects.count({}, { limit: upTo }),
        async create() {
          await projects.insert(project);
          return project;
        },
      });
    },
    list(companyId, { id, skip, limit }) {
      const found = projectsOf(companyId)
        .find(id === undefined ? {} : { _id: id })
        .sort({ _id: 1 });
      return readInParts(found.skip(skip).limit(limit), PARTS);
    },
    async get(companyId, _id) {
      return foundOr404(await projectsOf(companyId).findOne({ _id }), 'project');
    },
    async update(companyId, _id, changes) {
      const projects = projectsOf(companyId);
      if (isEmptyUpdate(changes)) {
        const found = foundOr404(await projects.findOne({ _id }), 'project');
        return { before: found, after: found };
      }
      const fields = { ...changes, updatedAt: new Date(nowMs()) };
      return foundOr404(await projects.setOne({ _id }, fields), 'project');
    },
  };
}

/** An update without fields changes nothing, `updatedAt` included (docs/contract.md C1.8). */
export function isEmptyUpdate(changes: object): boolean {
  return Object.keys(changes).length === 0;
}
