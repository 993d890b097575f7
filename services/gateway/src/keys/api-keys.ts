import { ALL_SCOPES, notGrantable, type Scope } from '@posthorn/domain/access.ts';
import {
  type AskedRights,
  type KeyRights,
  makeApiKey,
  toKeyRights,
} from '@posthorn/platform/mongo/companies/companies.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { ApiKeyDocument } from '@posthorn/platform/mongo/documents.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import type { mongo } from 'mongoose';
import { ApiError, cannotGive, cannotOutlive, foundOr404, notFound } from '../api-error.ts';
import type { Caller } from './rights.ts';
import type { Quotas } from '../projects/quotas.ts';
import type { ListPage } from '../projects/projects.ts';

interface ApiKeysDeps {
  db: mongo.Db;
  quotas: Quotas;
  nowMs: () => number;
  invalidate: Invalidate;
}

interface CreatedApiKey {
  /** Only its hash is stored; null when an earlier request of the same origin has created it. */
  key: string | null;
  document: ApiKeyDocument;
}

interface NewApiKey extends AskedRights {
  id: string;
  name: string;
}

interface KeyRotation {
  keyId: string;
  /** The id of the new key. */
  newKeyId: string;
  graceSeconds: number;
}

/** The API keys of a company. */
export interface ApiKeys {
  /** Throws ApiError 403 for rights that the maker does not have, 409 when the company has as many as it may. */
  create: (maker: Maker, key: NewApiKey) => Promise<CreatedApiKey>;
  /**
   * Makes another key with the same name and rights. The old one ends after the grace. Throws ApiError
   * 403 for rights that the maker does not have, 404 for an unknown key, 409 as `create` does, and for a key that a
   * link made.
   */
  rotate: (maker: Maker, rotation: KeyRotation) => Promise<CreatedApiKey>;
  /**
   * Oldest first, without the keys of people's sessions. Takes null for the keys of every app, and of the whole company;
   * `createdBy` is a person, undefined for every maker.
   */
  list: (
    companyId: string,
    asked: { appId: string | null; createdBy: string | undefined },
    page: ListPage,
  ) => Promise<ApiKeyDocument[]>;
  has: (companyId: string, keyId: string) => Promise<boolean>;
  /** Throws ApiError 404 for an unknown one. */
  get: (companyId: string, keyId: string) => Promise<ApiKeyDocument>;
  /** The only app that a key may be used for; null for the whole company, and for an unknown key. */
  appOf: (companyId: string, keyId: string) => Promise<string | null>;
  /** The keys with these hashes, by hash. */
  byHash: (
    companyId: string,
    hashes: readonly string[],
  ) => Promise<ReadonlyMap<string, ApiKeyDocument>>;
  /** Returns the revoked key. Throws ApiError 404 for an unknown one. */
  revoke: (companyId: string, keyId: string) => Promise<ApiKeyDocument>;
}

export function createApiKeys(deps: ApiKeysDeps): ApiKeys {
  const { db, nowMs, invalidate } = deps;
  const keysOf = (companyId: string) => documentsOf(db, 'apiKeys', companyId);

  async function required(companyId: string, _id: string): Promise<ApiKeyDocument> {
    return foundOr404(await keysOf(companyId).findOne({ _id }), 'API key');
  }

  return {
    async create(maker, { id, name, ...asked }) {
      const rights = rightsFor(await granterOf(db, maker), asked);
      return insertKey(deps, maker, { id, name, rights });
    },
    async rotate(maker, { keyId, newKeyId: id, graceSeconds }) {
      const { companyId } = maker;
      const old = await required(companyId, keyId);
      if (old.personId !== undefined) throw notFound('API key');
      // A new key with these rights would be known, and would stay when the link ends.
      if (old.removeAt) throw new ApiError('key_of_link');
      const rights = rightsLike(await granterOf(db, maker), old);
      const made = await keysOf(companyId).findOne({ _id: id });
      const created = made
        ? { key: null, document: made }
        : await insertKey(deps, maker, { id, name: old.name, rights });
      const endsAt = new Date(nowMs() + graceSeconds * 1_000);
      await keysOf(companyId).updateMany({ _id: keyId }, { $min: { expiresAt: endsAt } });
      await invalidate({ companyId, id: old.hash });
      return created;
    },
    async list(companyId, asked, { skip, limit }) {
      const found = keysOf(companyId).find(listedBy(asked));
      return found.sort({ _id: 1 }).skip(skip).limit(limit).toArray();
    },
    has: async (companyId, _id) => (await keysOf(companyId).findOne({ _id })) !== null,
    get: required,
    appOf: async (companyId, _id) => (await keysOf(companyId).findOne({ _id }))?.appId ?? null,
    async byHash(companyId, hashes) {
      const found = await keysOf(companyId)
        .find({ hash: { $in: [...hashes] } })
        .toArray();
      return new Map(found.map((key) => [key.hash, key]));
    },
    async revoke(companyId, _id) {
      const revoked = await required(companyId, _id);
      if (revoked.personId !== undefined) throw notFound('API key');
      if ((await keysOf(companyId).deleteMany({ _id })) === 0) throw notFound('API key');
      await invalidate({ companyId, id: revoked.hash });
      return revoked;
    },
  };
}

function listedBy({ appId, createdBy }: Parameters<ApiKeys['list']>[1]) {
  return {
    personId: { $exists: false },
    ...(appId !== null && { appId }),
    ...(createdBy !== undefined && { createdBy }),
  };
}

/**
 * A company does not manage the keys of links and of the sessions that they began. Null stands for a field
 * that is absent, and is counted from the index alone; with `$exists` MongoDB reads every key.
 */
const NOT_OF_LINK = { removeAt: { $in: [null as unknown as Date] } };

function insertKey(
  { db, quotas, nowMs }: ApiKeysDeps,
  { companyId, person }: Maker,
  { id, name, rights }: { id: string; name: string; rights: KeyRights },
): Promise<CreatedApiKey> {
  const made = makeApiKey({ newId: () => id, nowMs }, companyId, name, rights);
  const createdBy = person && { createdBy: person.id };
  const created = { ...made, document: { ...made.document, ...createdBy } };
  const keys = documentsOf(db, 'apiKeys', companyId);
  return quotas.createWithin({
    setting: 'QUOTA_KEYS_PER_COMPANY',
    companyId,
    ownerId: companyId,
    count: (upTo) => keys.count(NOT_OF_LINK, { limit: upTo }),
    async create() {
      await keys.insert(created.document);
      return created;
    },
  });
}

/** Whose request makes a key. */
type Maker = Pick<Caller, 'companyId' | 'keyId' | 'scopes' | 'appId' | 'person'>;

/** The rights of the maker of a key. */
interface Granter extends Pick<Maker, 'scopes' | 'appId'> {
  /** Null for a key without an end. */
  endsAtMs: number | null;
}

async function granterOf(db: ApiKeysDeps['db'], maker: Maker): Promise<Granter> {
  const { companyId, keyId, scopes, appId } = maker;
  const keys = documentsOf(db, 'apiKeys', companyId);
  const { expiresAt, removeAt } = (await keys.findOne({ _id: keyId })) ?? {};
  // The key of a session ends with the session; what its person makes stays (docs/contract.md C26.6).
  const endsAtMs = removeAt === undefined ? expiresAt?.getTime() : undefined;
  return { scopes, appId, endsAtMs: endsAtMs ?? null };
}

/** Returns the rights of a new key. Throws ApiError 403 for a scope that its maker does not have, and for a later end. */
export function rightsFor(maker: Granter, asked: AskedRights): KeyRights {
  const { scopes, expiresAtMs = maker.endsAtMs ?? undefined } = asked;
  assertGrantable(maker, scopes ?? ALL_SCOPES);
  if (maker.endsAtMs !== null && (expiresAtMs ?? Infinity) > maker.endsAtMs) {
    throw cannotOutlive(new Date(maker.endsAtMs));
  }
  // A key of one app makes keys of this app only.
  return toKeyRights({ scopes, appId: maker.appId ?? asked.appId, expiresAtMs });
}

/** Returns the rights of a key that takes the place of another one. Throws as `rightsFor` does. */
export function rightsLike(
  maker: Granter,
  { scopes, appId, expiresAt }: Pick<ApiKeyDocument, 'scopes' | 'appId' | 'expiresAt'>,
): KeyRights {
  // A key without an end outlives every other one.
  const endless = maker.endsAtMs === null ? undefined : Infinity;
  return rightsFor(maker, { scopes, appId, expiresAtMs: expiresAt?.getTime() ?? endless });
}

function assertGrantable({ scopes }: Granter, asked: readonly Scope[]): void {
  const [first] = notGrantable(scopes, asked);
  if (first === undefined) return;
  throw cannotGive(first);
}
