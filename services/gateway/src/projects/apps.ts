import { APP_FIELDS } from '@posthorn/domain/app-fields.ts';
import { type Hold, holdSourceOf } from '@posthorn/domain/waiting.ts';
import { type NotStored, notStoredBy } from '@posthorn/domain/message.ts';
import {
  changedFields,
  type Environment,
  type FieldChanges,
  newFields,
  type NewFields,
} from '@posthorn/domain/object-fields.ts';
import { type Changed, documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { AppDocument } from '@posthorn/platform/mongo/documents.ts';
import { readInParts } from '@posthorn/platform/mongo/read-in-parts.ts';
import { createExists, createInsertTogether } from '@posthorn/platform/mongo/write-together.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import type { mongo } from 'mongoose';
import { foundOr404, notFound } from '../api-error.ts';
import type { Quotas } from './quotas.ts';
import { isEmptyUpdate, type ListPage, type Projects } from './projects.ts';
import { claimFor, type Uids } from './uids.ts';

interface AppsDeps {
  db: mongo.Db;
  uids: Pick<Uids, 'claim'>;
  invalidate: Invalidate;
  quotas: Quotas;
  projects: Pick<Projects, 'get' | 'exists'>;
  nowMs: () => number;
}

type NewApp = NewFields<typeof APP_FIELDS> & { id: string };
type AppChanges = FieldChanges<typeof APP_FIELDS>;

interface AppQuery extends ListPage {
  projectId: string;
  /** Undefined for apps of any environment. */
  environment?: Environment | undefined;
  /** Only the app that has this id. */
  id?: string | undefined;
}

/** The apps of a company. Throws ApiError 404 for an unknown app, and for an unknown project. */
export interface Apps {
  /**
   * Creates the app after `isRecorded`. Throws ApiError 409 when the company has as many as it may, and when another app
   * has the uid.
   */
  create: (companyId: string, app: NewApp, isRecorded: Promise<unknown>) => Promise<AppDocument>;
  /** Whether the app exists now. Those that are asked for at the same time are read together. */
  exists: (companyId: string, appId: string) => Promise<boolean>;
  /** In parts, oldest first. */
  list: (companyId: string, query: AppQuery) => Promise<AsyncIterable<AppDocument[]>>;
  get: (companyId: string, appId: string) => Promise<AppDocument>;
  /** Returns the ids that are ids of apps. */
  existing: (companyId: string, appIds: readonly string[]) => Promise<ReadonlySet<string>>;
  /** Throws ApiError 409 when another app has the uid. */
  update: (companyId: string, appId: string, changes: AppChanges) => Promise<Changed<AppDocument>>;
  /** Sets the hold of the app to what `decide` returns, unless that is undefined. Returns the app before and after. */
  setHeld: (
    which: { companyId: string; appId: string },
    decide: (seen: Hold | null) => Hold | null | undefined,
  ) => Promise<Changed<AppDocument>>;
  has: (companyId: string, appId: string) => Promise<boolean>;
}

/** As of projects: an app has up to 21 kB. */
const PARTS = { batch: 48, part: 12 };

export function createApps(deps: AppsDeps): Apps {
  const { db, projects, nowMs } = deps;
  const appsOf = (companyId: string) => documentsOf(db, 'apps', companyId);
  const claim = claimFor(deps.uids, 'app');
  return {
    create: createWithin(deps),
    exists: createExists(db, 'apps'),
    async list(companyId, { projectId, environment, id, skip, limit }) {
      await projects.get(companyId, projectId);
      const filter = {
        projectId,
        ...(environment !== undefined && { environment }),
        ...(id !== undefined && { _id: id }),
      };
      const found = appsOf(companyId).find(filter).sort({ _id: 1 });
      return readInParts(found.skip(skip).limit(limit), PARTS);
    },
    get: async (companyId, _id) => foundOr404(await appsOf(companyId).findOne({ _id }), 'app'),
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
      const fields = { ...changedFields(APP_FIELDS, changes), updatedAt: new Date(nowMs()) };
      const write = () => apps.setOne({ _id }, fields);
      const changed = foundOr404(await claim({ companyId, uid: fields.uid }, write), 'app');
      await deps.invalidate({ companyId, id: _id });
      return changed;
    },
    setHeld: (which, decide) => setHeld(deps, which, decide),
    has: async (companyId, _id) => (await appsOf(companyId).findOne({ _id })) !== null,
  };
}

function createWithin(deps: AppsDeps): Apps['create'] {
  const { db, projects, quotas } = deps;
  const insert = createInsertTogether(db, 'apps');
  return async (companyId, app, isRecorded) => {
    await Promise.all([projects.get(companyId, app.projectId), isRecorded]);
    const created = await quotas.createWithin({
      setting: 'QUOTA_APPS_PER_COMPANY',
      companyId,
      ownerId: companyId,
      count: (upTo) => documentsOf(db, 'apps', companyId).count({}, { limit: upTo }),
      create: () => createApp(deps, insert, companyId, app),
    });
    quotas.noteEmpty('QUOTA_WEBHOOKS_PER_APP', created._id);
    return created;
  };
}

/** Returns what the app does not want stored of its messages; null when the company has no such app. */
export function createNotStored(
  db: mongo.Db,
): (companyId: string, appId: string) => Promise<NotStored | null> {
  return async (companyId, _id) => {
    const app = await documentsOf(db, 'apps', companyId).findOne({ _id });
    return app && notStoredBy(app);
  };
}

async function setHeld(
  { db, invalidate, nowMs }: AppsDeps,
  { companyId, appId: _id }: { companyId: string; appId: string },
  decide: (seen: Hold | null) => Hold | null | undefined,
): Promise<Changed<AppDocument>> {
  const apps = documentsOf(db, 'apps', companyId);
  const seen = foundOr404(await apps.findOne({ _id }), 'app');
  const held = decide(seen.held ?? null);
  if (held === undefined) return { before: seen, after: seen };
  const fields = { held: held ?? undefined, updatedAt: new Date(nowMs()) };
  const changed = foundOr404(await apps.setOne({ _id }, fields), 'app');
  await invalidate({ companyId, id: _id }, { companyId, id: holdSourceOf(_id) });
  return changed;
}

async function createApp(
  { db, uids, projects, nowMs }: AppsDeps,
  insert: (app: AppDocument) => Promise<void>,
  companyId: string,
  { id: _id, ...given }: NewApp,
): Promise<AppDocument> {
  const now = new Date(nowMs());
  const app: AppDocument = {
    _id,
    companyId,
    ...newFields(APP_FIELDS, given),
    createdAt: now,
    updatedAt: now,
  };
  await claimFor(uids, 'app')({ companyId, uid: app.uid }, () => insert(app));
  if (await projects.exists(companyId, given.projectId)) return app;
  // The project was deleted in the meantime. No app may outlive its project.
  await documentsOf(db, 'apps', companyId).deleteMany({ _id: app._id });
  throw notFound('project');
}

interface AppSearch {
  /** Part of the name, in any case, or the whole id or uid; all when it is left out. */
  text?: string | undefined;
  /** Only these apps. */
  ids?: readonly string[] | undefined;
  /** The only app that the caller may see. */
  onlyId?: string | undefined;
  /** Id of the last app of the page before. */
  afterId?: string | undefined;
  limit: number;
}

interface AppOfProject {
  id: string;
  uid: string | null;
  name: string;
  environment: AppDocument['environment'];
  held: Hold | null;
  projectId: string;
  /** The id of a project that is being deleted. */
  projectName: string;
}

interface FoundApps {
  /** Oldest first. */
  apps: AppOfProject[];
  nextCursor: string | null;
}

/** A company may have a million apps, and no index has parts of their names. */
const MAX_SCANNED = 1_000;
const BATCH = 200;

type Outline = Pick<AppDocument, '_id' | 'name' | 'environment' | 'projectId' | 'uid' | 'held'>;

/** Finds apps of any project by their names. Searches 1,000 apps at most. */
export async function findApps(
  db: mongo.Db,
  companyId: string,
  { text = '', ids, onlyId, afterId = '', limit }: AppSearch,
): Promise<FoundApps> {
  const wanted = text.toLowerCase();
  const _id = {
    $gt: afterId,
    ...(ids && { $in: [...ids] }),
    ...(onlyId !== undefined && { $eq: onlyId }),
  };
  const found = documentsOf(db, 'apps', companyId)
    .find({ _id })
    .sort({ _id: 1 })
    .limit(MAX_SCANNED)
    .project<Outline>({ name: 1, environment: 1, projectId: 1, uid: 1, held: 1 })
    .batchSize(Math.min(limit + 1, BATCH));
  const kept: Outline[] = [];
  let scanned = 0;
  let lastId = afterId;
  for await (const app of found) {
    if (kept.length === limit) return page(db, companyId, kept, lastId);
    scanned += 1;
    lastId = app._id;
    const isNamed = app._id === wanted || app.uid === text;
    if (isNamed || app.name.toLowerCase().includes(wanted)) kept.push(app);
  }
  return page(db, companyId, kept, scanned === MAX_SCANNED ? lastId : null);
}

async function page(
  db: mongo.Db,
  companyId: string,
  apps: readonly Outline[],
  nextCursor: string | null,
): Promise<FoundApps> {
  const ids = [...new Set(apps.map(({ projectId }) => projectId))];
  const projects = await documentsOf(db, 'projects', companyId)
    .find({ _id: { $in: ids } })
    .project<{ _id: string; name: string }>({ name: 1 })
    .toArray();
  const names = new Map(projects.map(({ _id, name }) => [_id, name]));
  return {
    apps: apps.map(({ _id: id, uid = null, held = null, projectId, ...shown }) => ({
      id,
      uid,
      ...shown,
      held,
      projectId,
      projectName: names.get(projectId) ?? projectId,
    })),
    nextCursor,
  };
}
