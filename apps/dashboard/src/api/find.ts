import { queryOptions, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, dataOf, type Schemas } from './client.ts';
import { ApiFailure } from './failure.ts';

export type Found = Schemas['Found'];

const UID_MARK = 'uid:';
const UID = /^[A-Za-z0-9._-]{1,128}$/;
/** An id of something else needs no mark. */
const NOTHING_HAS_IT = new Set([403, 404]);

/** Returns a text that somebody looks for, without the mark that calls need before a uid. */
export const withoutMark = (text: string): string =>
  text.startsWith(UID_MARK) ? text.slice(UID_MARK.length) : text;

/**
 * Returns what has this id, else what has this uid: at most an app, a webhook and a project. With `uid:` before it, a
 * text is a uid. Throws ApiFailure 404 when nothing of the company has it.
 */
export async function findAnything(text: string): Promise<Found[]> {
  const uid = withoutMark(text);
  if (uid !== text) return orNotFound(await findByUid(uid));
  try {
    return [await findById(text)];
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 404 || !UID.test(text)) throw error;
    const found = await findByUid(text);
    if (found.length === 0) throw error;
    return found;
  }
}

function findById(id: string): Promise<Found> {
  return dataOf(api.GET('/find', { params: { query: { id } } }));
}

async function findByUid(uid: string): Promise<Found[]> {
  const marked = UID_MARK + uid;
  const secrets = false;
  const app = api.GET('/apps/{appId}', { params: { path: { appId: marked } } });
  const webhook = api.GET('/webhooks/{webhookId}', {
    params: { path: { webhookId: marked }, query: { secrets } },
  });
  const project = api.GET('/projects/{projectId}', {
    params: { path: { projectId: marked } },
  });
  const found = await Promise.all([
    kindOf('app', dataOf(app)),
    kindOf('webhook', dataOf(webhook)),
    kindOf('project', dataOf(project)),
  ]);
  return found.filter((each) => each !== null);
}

/** A key of one app, and a visitor of the portal, may not read projects: those are not found. */
async function kindOf(kind: Found['kind'], read: Promise<{ id: string }>): Promise<Found | null> {
  try {
    return { kind, id: (await read).id };
  } catch (error) {
    if (error instanceof ApiFailure && NOTHING_HAS_IT.has(error.status)) return null;
    throw error;
  }
}

function orNotFound(found: Found[]): Found[] {
  if (found.length > 0) return found;
  throw new ApiFailure(404, { code: 'not_found', message: 'Nothing has this uid.' });
}

const FRESH_MS = 30_000;
/** More than the rows that most lists show. The API takes no more at once. */
const MOST_IDS = 100;

/** The things of at most 100 ids, by id; null for those that do not exist. */
export const byIdsQuery = <Thing extends { id: string }>(
  kind: 'webhooks' | 'apps',
  ids: readonly string[],
  read: (query: { ids: string; limit: number }) => Promise<Thing[]>,
) =>
  queryOptions({
    queryKey: [kind, 'of', ids],
    staleTime: FRESH_MS,
    enabled: ids.length > 0,
    queryFn: async (): Promise<ReadonlyMap<string, Thing | null>> => {
      const found = await read({ ids: ids.join(','), limit: MOST_IDS });
      const byId = new Map(found.map((thing) => [thing.id, thing]));
      return new Map(ids.map((id) => [id, byId.get(id) ?? null]));
    },
  });

/**
 * Returns the things of these ids, by id, without those that are not known yet or were deleted. What is known stays while
 * others are asked for.
 */
export function useByIds<Thing extends { id: string }>(
  ids: readonly string[],
  queryOf: (ids: readonly string[]) => ReturnType<typeof byIdsQuery<Thing>>,
): ReadonlyMap<string, Thing> {
  const [known, setKnown] = useState<ReadonlyMap<string, Thing | null>>(() => new Map());
  const unknown = [...new Set(ids)].filter((id) => !known.has(id)).slice(0, MOST_IDS);
  const { data } = useQuery(queryOf(unknown));
  if (data !== undefined && [...data.keys()].some((id) => !known.has(id))) {
    setKnown(new Map([...known, ...data]));
  }
  return new Map([...known].flatMap(([id, found]) => (found === null ? [] : [[id, found]])));
}
