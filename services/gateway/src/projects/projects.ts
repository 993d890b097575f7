import {
  changedFields,
  type FieldChanges,
  newFields,
  type NewFields,
} from '@posthorn/domain/object-fields.ts';
import { PROJECT_FIELDS } from '@posthorn/domain/project-fields.ts';
import { type Changed, documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { ProjectDocument } from '@posthorn/platform/mongo/documents.ts';
import { readInParts } from '@posthorn/platform/mongo/read-in-parts.ts';
import { createExists } from '@posthorn/platform/mongo/write-together.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import type { mongo } from 'mongoose';
import { foundOr404 } from '../api-error.ts';
import type { Quotas } from './quotas.ts';
import { claimFor, type Uids } from './uids.ts';

interface ProjectsDeps {
  db: mongo.Db;
  uids: Pick<Uids, 'claim'>;
  quotas: Quotas;
  invalidate: Invalidate;
  nowMs: () => number;
}

type NewProject = NewFields<typeof PROJECT_FIELDS> & { id: string };
type ProjectChanges = FieldChanges<typeof PROJECT_FIELDS>;

/** A part of a list that is ordered by age. */
export interface ListPage {
  skip: number;
  limit: number;
}

/** The projects of a company. Functions that take a project id throw ApiError 404 for an unknown one. */
export interface Projects {
  /** Throws ApiError 409 when the company has as many as it may, and when another one has the uid. */
  create: (companyId: string, project: NewProject) => Promise<ProjectDocument>;
  /** In parts, oldest first. With an `id`, only the project that has it. */
  list: (
    companyId: string,
    page: ListPage & { id?: string | undefined },
  ) => AsyncIterable<ProjectDocument[]>;
  get: (companyId: string, projectId: string) => Promise<ProjectDocument>;
  /** Whether the project exists now. Those that are asked for at the same time are read together. */
  exists: (companyId: string, projectId: string) => Promise<boolean>;
  /** Throws ApiError 409 when another project has the uid. */
  update: (
    companyId: string,
    projectId: string,
    changes: ProjectChanges,
  ) => Promise<Changed<ProjectDocument>>;
}

/** A project has up to 21 kB, in its description and its metadata: a part has 250 kB, about 4 ms of CPU time with its JSON. */
const PARTS = { batch: 48, part: 12 };

export function createProjects(deps: ProjectsDeps): Projects {
  const { db, uids, quotas, invalidate, nowMs } = deps;
  const projectsOf = (companyId: string) => documentsOf(db, 'projects', companyId);
  const claim = claimFor(uids, 'project');
  return {
    async create(companyId, { id: _id, ...given }) {
      const now = new Date(nowMs());
      const project: ProjectDocument = {
        _id,
        companyId,
        ...newFields(PROJECT_FIELDS, given),
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
          await claim({ companyId, uid: project.uid }, () => projects.insert(project));
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
    exists: createExists(db, 'projects'),
    async update(companyId, _id, changes) {
      const projects = projectsOf(companyId);
      if (isEmptyUpdate(changes)) {
        const found = foundOr404(await projects.findOne({ _id }), 'project');
        return { before: found, after: found };
      }
      const fields = { ...changedFields(PROJECT_FIELDS, changes), updatedAt: new Date(nowMs()) };
      const write = () => projects.setOne({ _id }, fields);
      const changed = foundOr404(await claim({ companyId, uid: fields.uid }, write), 'project');
      await invalidate({ companyId, id: _id });
      return changed;
    },
  };
}

/** An update without fields changes nothing, `updatedAt` included (docs/contract.md C1.8). */
export function isEmptyUpdate(changes: object): boolean {
  return Object.keys(changes).length === 0;
}
