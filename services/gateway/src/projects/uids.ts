import { UID_MARK, uid as uidSchema } from '@posthorn/domain/field-types.ts';
import {
  CoalescingCache,
  type ForgettingCache,
} from '@posthorn/platform/memory/coalescing-cache.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import mongoose, { type mongo } from 'mongoose';
import { ApiError, invalidRequest } from '../api-error.ts';

/** A uid is unique for a company and one of these (docs/contract.md C5.12). */
const COLLECTIONS = { project: 'projects', app: 'apps', webhook: 'webhooks' } as const;

export type UidKind = keyof typeof COLLECTIONS;

export interface OwnUid {
  companyId: string;
  kind: UidKind;
  uid: string;
}

/** The names that clients give to their own projects, apps and webhooks in place of ids. */
export interface Uids {
  /** Returns the id of what has the uid, as it was two seconds ago or later; null when nothing has it. */
  idOf: (own: OwnUid) => Promise<string | null>;
  /** The same for many, with one read for those that are not known. Returns uid → id; uids that nothing has are missing. */
  idsOf: (of: Omit<OwnUid, 'uid'>, uids: ReadonlySet<string>) => Promise<Map<string, string>>;
  /**
   * Returns the id of what has the uid now; null when nothing has it. What is being deleted with its project or app
   * loses its uid by this.
   */
  holderOf: (own: OwnUid) => Promise<string | null>;
  /** Calls `write`, which gives the uid to something. Throws ApiError 409 when something else has it. */
  claim: <Written>(own: OwnUid, write: () => Promise<Written>) => Promise<Written>;
  /** Forgets what an app or webhook had as its uid, by its id. */
  cache: ForgettingCache;
}

interface UidsDeps {
  db: mongo.Db;
  /** Memory for the cache. */
  cacheBytes: number;
  /** Returns true while `forget` is called for every change of an app or webhook. */
  areChangesFollowed: () => boolean;
}

/** How long a result is cached while changes are not followed (docs/decisions/0003-caches.md). */
const CACHE_TTL_MS = 2_000;
/** The key, the id twice, and the entries of the cache. */
const ENTRY_BYTES = 500;

export function createUids({ db, cacheBytes, areChangesFollowed }: UidsDeps): Uids {
  const cache = new CoalescingCache<{ id: string }>({
    maxSize: cacheBytes,
    sizeOf: () => ENTRY_BYTES,
    ttlMs: CACHE_TTL_MS,
    isFollowed: areChangesFollowed,
    // Another uid, and the deletion, are changes of what has it now.
    sourcesOf: ({ id }) => [id],
  });

  async function holderOf(own: OwnUid): Promise<string | null> {
    const found = await findHolder(db, own);
    if (!found) return null;
    if (await hasOwner(db, own, found)) return found.id;
    await release(db, own, found.id);
    cache.forget(found.id);
    return null;
  }

  return {
    async idOf(own) {
      // No message names a project, so nothing forgets a project's.
      if (own.kind === 'project') return (await findHolder(db, own))?.id ?? null;
      return (await cache.get(keyOf(own), () => findHolder(db, own)))?.id ?? null;
    },
    async idsOf(of, uids) {
      let reading: Promise<Map<string, Holder>> | undefined;
      const find = async (uid: string): Promise<Holder | null> => {
        reading ??= findHolders(db, of, [...uids]);
        return (await reading).get(uid) ?? null;
      };
      const found = new Map<string, string>();
      const look = async (uid: string): Promise<void> => {
        const holder = await cache.get(keyOf({ ...of, uid }), () => find(uid));
        if (holder) found.set(uid, holder.id);
      };
      await Promise.all([...uids].map(look));
      return found;
    },
    holderOf,
    async claim(own, write) {
      try {
        return await write();
      } catch (error) {
        if (!isTaken(error)) throw error;
        if ((await holderOf(own)) !== null) throw uidTaken(own);
      }
      return write().catch((error: unknown) => {
        throw isTaken(error) ? uidTaken(own) : error;
      });
    },
    cache,
  };
}

/** Returns a function that calls `claim` for what gets a uid, and else only writes. */
export function claimFor(uids: Pick<Uids, 'claim'>, kind: UidKind) {
  return <Written>(
    { companyId, uid }: { companyId: string; uid: string | null | undefined },
    write: () => Promise<Written>,
  ): Promise<Written> =>
    typeof uid === 'string' ? uids.claim({ companyId, kind, uid }, write) : write();
}

interface Holder {
  id: string;
  /** Of an app or webhook. */
  projectId?: string;
  /** Of a webhook that is not global. */
  appId?: string | null;
}

const keyOf = ({ companyId, kind, uid }: OwnUid): string => `${companyId}/${kind}/${uid}`;

async function findHolder(db: mongo.Db, { uid, ...of }: OwnUid): Promise<Holder | null> {
  return (await findHolders(db, of, [uid])).get(uid) ?? null;
}

/** Returns uid → what has it. */
async function findHolders(
  db: mongo.Db,
  { companyId, kind }: Omit<OwnUid, 'uid'>,
  uids: readonly string[],
): Promise<Map<string, Holder>> {
  const found = await documentsOf(db, COLLECTIONS[kind], companyId)
    .find({ uid: { $in: [...uids] } }, { limit: uids.length })
    .project<{ _id: string; uid: string } & Omit<Holder, 'id'>>({
      uid: 1,
      projectId: 1,
      appId: 1,
    })
    .toArray();
  return new Map(found.map(({ _id: id, uid, ...owners }) => [uid, { id, ...owners }]));
}

/** A deletion responds once the root is gone. Everything under it follows in steps, and must not block its uids. */
async function hasOwner(
  db: mongo.Db,
  { companyId }: OwnUid,
  { projectId, appId = null }: Holder,
): Promise<boolean> {
  const exists = async (name: 'projects' | 'apps', _id: string): Promise<boolean> =>
    (await documentsOf(db, name, companyId).count({ _id }, { limit: 1 })) > 0;
  if (projectId !== undefined && !(await exists('projects', projectId))) return false;
  return appId === null || exists('apps', appId);
}

async function release(db: mongo.Db, own: OwnUid, _id: string): Promise<void> {
  const { companyId, kind, uid } = own;
  const documents = documentsOf(db, COLLECTIONS[kind], companyId);
  await documents.updateMany({ _id, uid }, { $unset: { uid: '' } });
}

const DUPLICATE_KEY = 11_000;

function isTaken(error: unknown): boolean {
  if (!(error instanceof mongoose.mongo.MongoServerError) || error.code !== DUPLICATE_KEY) {
    return false;
  }
  return Object.hasOwn((error.keyPattern ?? {}) as object, 'uid');
}

export function uidTaken({ kind, uid }: Omit<OwnUid, 'companyId'>): ApiError {
  return new ApiError('uid_taken', `Another ${kind} has the uid ${uid}.`);
}

/** The kinds of what the parameters and fields with these names are ids of. */
const KINDS = { projectId: 'project', appId: 'app', webhookId: 'webhook' } as const;
const NAMES = Object.keys(KINDS) as (keyof typeof KINDS)[];

type Fields = Readonly<Record<string, unknown>>;

export type ResolveUids = <Named extends Fields>(
  named: Named,
  asked: { companyId: string; idsOf?: UidKind | undefined },
) => Named | Promise<Named>;

/**
 * Returns what a request names with the id in place of each `uid:…`. One that nothing has stays as it is, which is no
 * id: so it is treated as an unknown id. `idsOf` is the kind of the list `ids`.
 */
export function createResolveUids(idOf: Uids['idOf']): ResolveUids {
  return (named, { companyId, idsOf }) => {
    const names = NAMES.filter((name) => isMarked(named[name]));
    const { ids } = named;
    const hasList = idsOf !== undefined && typeof ids === 'string' && ids.includes(UID_MARK);
    // Nearly every request: no promise is made for it.
    if (names.length === 0 && !hasList) return named;
    const resolve = async (kind: UidKind, text: string): Promise<string> => {
      if (!isMarked(text)) return text;
      const uid = uidIn(text);
      return (uid === null ? null : await idOf({ companyId, kind, uid })) ?? text;
    };
    return (async () => {
      const resolved: Record<string, unknown> = { ...named };
      for (const name of names) resolved[name] = await resolve(KINDS[name], String(named[name]));
      if (!hasList) return resolved as typeof named;
      const list: string[] = [];
      for (const each of ids.split(',')) list.push(await resolve(idsOf, each));
      return { ...resolved, ids: list.join() } as unknown as typeof named;
    })();
  };
}

/** Whether a text of a request is in the place of an id and is a uid. */
export function isMarked(text: unknown): text is string {
  return typeof text === 'string' && text.startsWith(UID_MARK);
}

/** Returns the uid of a text such as `uid:customer-17`; null for an id, and for what no uid can be. */
export function uidIn(text: string): string | null {
  if (!isMarked(text)) return null;
  const { data } = uidSchema.safeParse(text.slice(UID_MARK.length));
  return data ?? null;
}

interface UpsertWork<Value> {
  /** The uid in the body, if there is one. */
  given: string | undefined;
  create: () => Promise<Value>;
  /** Takes the id of what has the uid. */
  update: (id: string) => Promise<Value>;
}

/** The most tries while other requests create and delete what has the uid. */
const MAX_TRIES = 10;

/**
 * Updates what has the uid, or creates it, and returns which of them it did. Of several requests at once one creates it,
 * and the others update it. Throws ApiError 400 when the body has another uid, and what `create` and `update` throw.
 */
export async function upsertByUid<Value extends object>(
  uids: Pick<Uids, 'holderOf'>,
  own: OwnUid,
  { given = own.uid, create, update }: UpsertWork<Value>,
): Promise<Value & { isCreated: boolean }> {
  if (given !== own.uid) {
    throw invalidRequest([{ path: 'uid', message: 'is another one than that of the address' }]);
  }
  for (let tryNumber = 1; ; tryNumber += 1) {
    const id = await uids.holderOf(own);
    try {
      return { ...(await (id === null ? create() : update(id))), isCreated: id === null };
    } catch (error) {
      if (tryNumber === MAX_TRIES || !(error instanceof ApiError)) throw error;
      const isLostRace = id === null && error.code === 'uid_taken';
      // Another request has created or deleted it meanwhile, and may have used up the quota.
      if (!isLostRace && (await uids.holderOf(own)) === id) throw error;
    }
  }
}
