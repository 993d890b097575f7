import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { AppDocument } from '@posthorn/platform/mongo/documents/documents.ts';
import type { mongo } from 'mongoose';

export interface AppSearch {
  /** Part of the name, in any case, or the whole id; all when it is left out. */
  text?: string | undefined;
  /** The only app that the caller may see. */
  onlyId?: string | undefined;
  /** Id of the last app of the page before. */
  afterId?: string | undefined;
  limit: number;
}

export interface AppOfProject {
  id: string;
  name: string;
  environment: AppDocument['environment'];
  projectId: string;
  /** The id of a project that is being deleted. */
  projectName: string;
}

export interface FoundApps {
  /** Oldest first. */
  apps: AppOfProject[];
  nextCursor: string | null;
}

export type FindApps = (companyId: string, search: AppSearch) => Promise<FoundApps>;

/** A company may have a million apps, and no index has parts of their names. */
const MAX_SCANNED = 1_000;
const BATCH = 200;

type Outline = Pick<AppDocument, '_id' | 'name' | 'environment' | 'projectId'>;

/** Finds apps of any project by their names. Returns what it has found when it has looked at 1,000. */
export function createFindApps(db: mongo.Db): FindApps {
  return async (companyId, { text = '', onlyId, afterId = '', limit }) => {
    const wanted = text.toLowerCase();
    const found = documentsOf(db, 'apps', companyId)
      .find(
        onlyId === undefined ? { _id: { $gt: afterId } } : { _id: { $eq: onlyId, $gt: afterId } },
      )
      .sort({ _id: 1 })
      .limit(MAX_SCANNED)
      .project<Outline>({ name: 1, environment: 1, projectId: 1 })
      .batchSize(Math.min(limit + 1, BATCH));
    const kept: Outline[] = [];
    let scanned = 0;
    let lastId = afterId;
    for await (const app of found) {
      if (kept.length === limit) return page(db, companyId, kept, lastId);
      scanned += 1;
      lastId = app._id;
      if (app._id === wanted || app.name.toLowerCase().includes(wanted)) kept.push(app);
    }
    return page(db, companyId, kept, scanned === MAX_SCANNED ? lastId : null);
  };
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
    apps: apps.map(({ _id: id, projectId, ...shown }) => ({
      id,
      ...shown,
      projectId,
      projectName: names.get(projectId) ?? projectId,
    })),
    nextCursor,
  };
}
