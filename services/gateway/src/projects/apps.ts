import type { IdPrefix } from '@posthorn/domain/ids/ids.ts';
import type { StorageSettings } from '@posthorn/domain/message/not-stored.ts';
import { documentsOf, type Changed } from '@posthorn/platform/mongo/company-documents.ts';
import type { AppDocument, Environment } from '@posthorn/platform/mongo/documents/documents.ts';
import type { mongo } from 'mongoose';
import { foundOr404 } from '../http/api-error.ts';
import type { Quotas } from '../limits/quotas.ts';
import { isEmptyUpdate } from './is-empty-update.ts';
import type { ListPage, Projects } from './projects.ts';

export interface AppsDeps {
  db: mongo.Db;
  quotas: Quotas;
  projects: Pick<Projects, 'get'>;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

export interface NewApp extends StorageSettings {
  projectId: string;
  name: string;
  description: string;
  environment: Environment;
}

export interface AppChanges extends StorageSettings {
  name?: string;
  description?: string;
}

export interface AppQuery extends ListPage {
  projectId: string;
  /** Undefined for apps of any environment. */
  environment?: Environment | undefined;
  /** Only the app that has this id. */
  id?: string | undefined;
}

/** The apps of a company. Throws ApiError 404 for an unknown app, and for an unknown project. */
export interface Apps {
  /** Throws ApiError 409 when the company has as many as it may. */
  create: (companyId: string, app: NewApp) => Promise<AppDocument>;
  /** Oldest first. */
  list: (companyId: string, query: AppQuery) => Promise<AppDocument[]>;
  get: (companyId: string, appId: string) => Promise<AppDocument>;
  /** Those of the ids that are ids of apps. */
  existing: (companyId: string, appIds: readonly string[]) => Promise<ReadonlySet<string>>;
  update: (companyId: string, appId: string, changes: AppChanges) => Promise<Changed<AppDocument>>;
}

export function createApps(deps: AppsDeps): Apps {
  const { db, projects, nowMs } = deps;
  const appsOf = (companyId: string) => documentsOf(db, 'apps', companyId);
  return {
    create: (companyId, app) =>
      deps.quotas.createWithin({
        setting: 'QUOTA_APPS_PER_COMPANY',
        companyId,
        ownerId: companyId,
        count: (upTo) => appsOf(companyId).count({}, { limit: upTo }),
        create: () => createApp(deps, companyId, app),
      }),
    async list(companyId, { projectId, environment, id, skip, limit }) {
      await projects.get(companyId, projectId);
      const filter = {
        projectId,
        ...(environment !== undefined && { environment }),
        ...(id !== undefined && { _id: id }),
      };
      const found = appsOf(companyId).find(filter).sort({ _id: 1 });
      return found.skip(skip).limit(limit).toArray();
    },
    async get(companyId, _id) {
      return foundOr404(await appsOf(companyId).findOne({ _id }), 'app');
    },
    async existing(companyId, ids) {
      const found = appsOf(companyId).find({ _id: { $in: [...ids] } });
      const apps = await found.project<{ _id: string }>({ _id: 1 }).toArray();
      return new Set(apps.map(({ _id }) => _id));
    },
    async update(companyId, _id, changes) {
      const apps = appsOf(companyId);
      if (isEmptyUpdate(changes)) {
        const found = foundOr404(await apps.findOne({ _id }), 'app');
        return { before: found, after: found };
      }
      const fields = { ...changes, updatedAt: new Date(nowMs()) };
      return foundOr404(await apps.setOne({ _id }, fields), 'app');
    },
  };
}

async function createApp(
  { db, projects, newId, nowMs }: AppsDeps,
  companyId: string,
  { projectId, name, description, environment, ...storage }: NewApp,
): Promise<AppDocument> {
  await projects.get(companyId, projectId);
  const now = new Date(nowMs());
  const app: AppDocument = {
    _id: newId('app'),
    companyId,
    name,
    description,
    projectId,
    environment,
    ...storage,
    createdAt: now,
    updatedAt: now,
  };
  const apps = documentsOf(db, 'apps', companyId);
  await apps.insert(app);
  try {
    await projects.get(companyId, projectId);
  } catch (error) {
    // The project was deleted in the meantime. No app may outlive its project.
    await apps.deleteMany({ _id: app._id });
    throw error;
  }
  return app;
}
