import { type GroupRole, type Role, roleByGroup, roleOf } from '@posthorn/domain/people.ts';
import type { mongo } from 'mongoose';
import { hash } from 'node:crypto';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import type { ApiKeyDocument } from '../documents.ts';

/** The key of a session, which nobody knows. */
export type SessionKey = ApiKeyDocument & Required<Pick<ApiKeyDocument, 'personId' | 'signIn'>>;

/** The sessions of people, which are API keys, and the API keys that people made. */
export interface PersonSessionStore {
  insertSession: (key: ApiKeyDocument) => Promise<void>;
  /** The sessions of a person, oldest first. */
  sessionsOf: (companyId: string, personId: string) => Promise<SessionKey[]>;
  /** Those whose role is another one by this mapping, in batches. */
  sessionsChangedBy: (
    companyId: string,
    mapping: readonly GroupRole[],
  ) => AsyncIterable<SessionKey[]>;
  sessionOfKey: (keyHash: string) => Promise<SessionKey | null>;
  /** The sessions that began with this session of the issuer, in every company. */
  sessionsOfSid: (sidHash: string) => Promise<SessionKey[]>;
  /** Returns the sessions that it removed. */
  removeSessions: (companyId: string, keyIds: readonly string[]) => Promise<number>;
  /** The API keys that a person made, oldest first, up to `limit`. */
  keysMadeBy: (companyId: string, personId: string, limit: number) => Promise<ApiKeyDocument[]>;
  countKeysMadeBy: (
    companyId: string,
    personIds: readonly string[],
  ) => Promise<Map<string, number>>;
}

/** A session of the issuer, as it is stored. */
export const sidHashOf = (issuer: string, sid: string): string =>
  hash('sha256', `${issuer}\n${sid}`, 'hex');

export function createPersonSessionStore(db: mongo.Db): PersonSessionStore {
  const apiKeys = collection(db, 'apiKeys');
  const keysOf = (companyId: string) => documentsOf(db, 'apiKeys', companyId);
  return {
    async insertSession(key) {
      await apiKeys.insertOne(key);
    },
    sessionsOf: async (companyId, personId) =>
      (await keysOf(companyId).find({ personId }).sort({ _id: 1 }).toArray()).filter(isSession),
    sessionsChangedBy: (companyId, mapping) => sessionsChangedBy(db, companyId, mapping),
    async sessionOfKey(keyHash) {
      const found = await apiKeys.findOne({ hash: keyHash });
      return found && isSession(found) ? found : null;
    },
    sessionsOfSid: async (sidHash) => (await apiKeys.find({ sidHash }).toArray()).filter(isSession),
    removeSessions: (companyId, keyIds) =>
      keysOf(companyId).deleteMany({ _id: { $in: [...keyIds] }, personId: { $exists: true } }),
    keysMadeBy: (companyId, createdBy, limit) =>
      keysOf(companyId).find({ createdBy }).sort({ _id: 1 }).limit(limit).toArray(),
    async countKeysMadeBy(companyId, personIds) {
      const $match = { companyId, createdBy: { $in: [...personIds] } };
      const counted = apiKeys.aggregate<{ _id: string; count: number }>([
        { $match },
        { $group: { _id: '$createdBy', count: { $sum: 1 } } },
      ]);
      return new Map((await counted.toArray()).map(({ _id, count }) => [_id, count]));
    },
  };
}

const isSession = (key: ApiKeyDocument): key is SessionKey =>
  key.personId !== undefined && key.signIn !== undefined;

/** Sessions that are ended with one request. */
const BATCH = 500;

async function* sessionsChangedBy(
  db: mongo.Db,
  companyId: string,
  mapping: readonly GroupRole[],
): AsyncGenerator<SessionKey[]> {
  const people = documentsOf(db, 'people', companyId);
  const keys = documentsOf(db, 'apiKeys', companyId);
  const invited = new Map<string, Role | null>();
  let changed: SessionKey[] = [];
  for await (const key of keys.find({ personId: { $exists: true } })) {
    if (!isSession(key)) continue;
    const { personId, signIn: began } = key;
    if (!invited.has(personId)) {
      const person = await people.findOne({ _id: personId });
      invited.set(personId, person?.invitedRole ?? null);
    }
    const byGroup = began.groups && roleByGroup(began.groups, mapping);
    const now = roleOf({ byGroup, byInvitation: invited.get(personId) ?? null });
    if (now?.role !== began.role) changed.push(key);
    if (changed.length < BATCH) continue;
    yield changed;
    changed = [];
  }
  yield changed;
}
