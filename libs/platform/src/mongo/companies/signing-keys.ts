import type { SigningKey, SigningKeys } from '@posthorn/domain/request/signature.ts';
import type { mongo } from 'mongoose';
import { SealedValueError, type Vault } from '../../security/vault.ts';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import { isDuplicateKey } from '../connect.ts';
import type { SigningKeyDocument } from '../documents.ts';

/** The signing keys of one company; a key that cannot be opened must not affect other companies. */
export type FoundSigningKeys =
  { kind: 'opened'; keys: SigningKeys } | { kind: 'unopened'; problem: SealedValueError };

export interface SigningKeyStore {
  /** The keys that sign at this time; null before the first use. Throws SealedValueError when one cannot be opened. */
  find: (companyId: string, nowMs: number) => Promise<SigningKeys | null>;
  /** The number of the newest key, read without opening it; 0 when there is none. */
  newestNumber: (companyId: string) => Promise<number>;
  /** By company; one without keys is not in the map. For what acts for every company. */
  findMany: (
    companyIds: readonly string[],
    nowMs: number,
  ) => Promise<Map<string, FoundSigningKeys>>;
  /** Returns false when the company has a key of this number: another process was first. */
  insert: (key: SigningKey) => Promise<boolean>;
  /** Lets the key of this number be removed at this time (since 1970), and removes all before it. */
  retire: (companyId: string, number: number, expiresAtMs: number) => Promise<void>;
}

export function createSigningKeyStore(db: mongo.Db, vault: Vault): SigningKeyStore {
  const own = (companyId: string) => documentsOf(db, 'signingKeys', companyId);
  const newestOf = (companyId: string, limit: number): Promise<SigningKeyDocument[]> =>
    own(companyId).find({}).sort({ number: -1 }).limit(limit).toArray();
  return {
    find: async (companyId, nowMs) => openKeysAt(vault, await newestOf(companyId, 2), nowMs),
    newestNumber: async (companyId) => (await newestOf(companyId, 1))[0]?.number ?? 0,
    async findMany(companyIds, nowMs) {
      const found = collection(db, 'signingKeys').find({ companyId: { $in: [...companyIds] } });
      const documents = await found.sort({ companyId: 1, number: -1 }).toArray();
      const byCompany = Map.groupBy(documents, ({ companyId }) => companyId);
      return new Map(
        [...byCompany].map(([companyId, each]) => [companyId, tryToOpen(vault, each, nowMs)]),
      );
    },
    async insert(key) {
      try {
        await own(key.companyId).insert(sealSigningKey(vault, key));
        return true;
      } catch (error) {
        if (isDuplicateKey(error)) return false;
        throw error;
      }
    },
    async retire(companyId, number, expiresAtMs) {
      await own(companyId).updateMany({ number }, { $set: { expiresAt: new Date(expiresAtMs) } });
      await own(companyId).deleteMany({ number: { $lt: number } });
    },
  };
}

function tryToOpen(
  vault: Vault,
  newestFirst: readonly SigningKeyDocument[],
  nowMs: number,
): FoundSigningKeys {
  try {
    const keys = openKeysAt(vault, newestFirst, nowMs);
    return keys ? { kind: 'opened', keys } : { kind: 'unopened', problem: noSigningKeys() };
  } catch (problem) {
    if (!(problem instanceof SealedValueError)) throw problem;
    return { kind: 'unopened', problem };
  }
}

/** For a webhook that is to be signed by a company that has no keys: its documents are lost. */
export function noSigningKeys(): SealedValueError {
  return new SealedValueError('the company has no signing keys', null);
}

/**
 * The sealed parts of a key. The public key is one: who can write to the database must not be able to
 * publish another one. And the number and the end of the grace, which decide which keys sign.
 */
type SealedPart = Omit<SigningKey, 'id' | 'companyId' | 'createdAtMs'>;

export function sealSigningKey(vault: Vault, key: SigningKey): SigningKeyDocument {
  const { id: _id, companyId, createdAtMs, ...part } = key;
  const sealed = vault.seal(JSON.stringify(part satisfies SealedPart), bindingOf(_id, companyId));
  const createdAt = new Date(createdAtMs);
  return { _id, companyId, number: key.number, sealed, keyId: vault.keyIdOf(sealed), createdAt };
}

/** Throws SealedValueError unless the key was sealed for this company, id and number. */
export function openSigningKey(vault: Vault, document: SigningKeyDocument): SigningKey {
  const { _id: id, companyId, number, createdAt } = document;
  const plain = vault.open(document.sealed, bindingOf(id, companyId));
  // A value that opens was written by sealSigningKey, so its JSON has the right shape.
  const part = JSON.parse(plain) as SealedPart;
  if (part.number !== number) {
    throw new SealedValueError(`the number of ${id} was changed`, document.keyId);
  }
  return { id, companyId, createdAtMs: createdAt.getTime(), ...part };
}

/**
 * Returns the keys that sign now, of the documents of one company, newest first. Opens no others, so that one
 * that does not open can be rotated away. Null without documents. Throws SealedValueError.
 */
export function openKeysAt(
  vault: Vault,
  [newest, before]: readonly SigningKeyDocument[],
  nowMs: number,
): SigningKeys | null {
  if (!newest) return null;
  const current = openSigningKey(vault, newest);
  const { previousUntilMs: expiresAtMs } = current;
  if (!before || expiresAtMs === null || expiresAtMs <= nowMs) return { current, previous: null };
  return { current, previous: { key: openSigningKey(vault, before), expiresAtMs } };
}

function bindingOf(ownerId: string, companyId: string) {
  return { companyId, ownerId, field: 'signingKey' };
}
