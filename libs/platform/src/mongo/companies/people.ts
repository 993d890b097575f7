import { companyStatusOf } from '@posthorn/domain/company.ts';
import type { GroupRole, Profile, Role } from '@posthorn/domain/people.ts';
import type { mongo } from 'mongoose';
import { hash } from 'node:crypto';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import { isDuplicateKey } from '../connect.ts';
import type { ApiKeyDocument, PersonDocument } from '../documents.ts';

/** A person, wherever they sign in. */
export interface Identity {
  issuer: string;
  subject: string;
}

/** A company, with what it knows about one person. */
export interface CompanyForPerson {
  companyId: string;
  name: string;
  isSuspended: boolean;
  mapping: readonly GroupRole[];
  /** Null when the person has no entry. */
  person: PersonDocument | null;
}

/** What a sign-in stores about a person. */
export interface SignedInEntry extends Profile {
  id: string;
  groupRole: Role | null;
  invitedRole: Role | null;
  atMs: number;
}

export interface ChangedPerson {
  invitedRole?: Role;
  isDisabled?: boolean;
}

/** The key of a session, which nobody knows. */
export type SessionKey = ApiKeyDocument & Required<Pick<ApiKeyDocument, 'personId' | 'signIn'>>;

/** People of companies, and their sessions, whose API keys they are. */
export interface PeopleStore {
  /** Returns each company that has an entry of the person, or that names one of the groups. */
  companiesFor: (identity: Identity, groups: readonly string[]) => Promise<CompanyForPerson[]>;
  /** The same of one company; null for an unknown one. */
  companyFor: (identity: Identity, companyId: string) => Promise<CompanyForPerson | null>;
  hasPeople: (companyId: string) => Promise<boolean>;
  get: (companyId: string, id: string) => Promise<PersonDocument | null>;
  /** Oldest first. */
  list: (companyId: string, page: { skip: number; limit: number }) => Promise<PersonDocument[]>;
  /** Returns the entry of the person, which it makes unless there is one; null when a sign-in at the same time made it. */
  signIn: (
    companyId: string,
    identity: Identity,
    entry: SignedInEntry,
  ) => Promise<PersonDocument | null>;
  /** Returns the person before and after; null for an unknown one. */
  change: (
    companyId: string,
    id: string,
    change: ChangedPerson,
    nowMs: number,
  ) => Promise<{ before: PersonDocument; after: PersonDocument } | null>;
  /** Returns the removed person; null for an unknown one. */
  remove: (companyId: string, id: string) => Promise<PersonDocument | null>;
  readMapping: (companyId: string) => Promise<GroupRole[]>;
  writeMapping: (companyId: string, groups: readonly GroupRole[], nowMs: number) => Promise<void>;

  insertSession: (key: ApiKeyDocument) => Promise<void>;
  /** The sessions of a person, oldest first. */
  sessionsOf: (companyId: string, personId: string) => Promise<SessionKey[]>;
  /** The sessions of everyone in the company. */
  sessionsIn: (companyId: string) => AsyncIterable<SessionKey>;
  sessionOfKey: (keyHash: string) => Promise<SessionKey | null>;
  /** The sessions that began with this session of the issuer, in every company. */
  sessionsOfSid: (sidHash: string) => Promise<SessionKey[]>;
  /** The entries of the person in every company. */
  entriesOf: (identity: Identity) => Promise<PersonDocument[]>;
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

/** More companies are offered to nobody. */
const MAX_COMPANIES = 1_000;

export function createPeopleStore(db: mongo.Db): PeopleStore {
  const people = collection(db, 'people');
  const apiKeys = collection(db, 'apiKeys');
  const peopleOf = (companyId: string) => documentsOf(db, 'people', companyId);
  const keysOf = (companyId: string) => documentsOf(db, 'apiKeys', companyId);
  const settingsOf = (companyId: string) => documentsOf(db, 'peopleSettings', companyId);
  return {
    companiesFor: (identity, groups) => companiesFor(db, identity, groups),
    async companyFor({ issuer, subject }, companyId) {
      const person = await peopleOf(companyId).findOne({ issuer, subject });
      const [found] = await companiesById(db, [companyId], person ? [person] : []);
      return found ?? null;
    },
    hasPeople: async (companyId) => (await peopleOf(companyId).findOne({})) !== null,
    get: (companyId, _id) => peopleOf(companyId).findOne({ _id }),
    list: (companyId, { skip, limit }) =>
      peopleOf(companyId).find({}).sort({ _id: 1 }).skip(skip).limit(limit).toArray(),
    signIn: (companyId, identity, entry) => signIn(db, { companyId, ...identity }, entry),
    async change(companyId, _id, { invitedRole, isDisabled }, nowMs) {
      const changed = await peopleOf(companyId).setOne(
        { _id },
        {
          ...(invitedRole && { invitedRole }),
          ...(isDisabled !== undefined && {
            disabledAt: (isDisabled ? new Date(nowMs) : undefined) as Date,
          }),
        },
      );
      return changed;
    },
    async remove(companyId, _id) {
      const found = await peopleOf(companyId).findOne({ _id });
      if (found) await peopleOf(companyId).deleteMany({ _id });
      return found;
    },
    readMapping: async (companyId) =>
      (await settingsOf(companyId).findOne({ _id: companyId }))?.groups ?? [],
    async writeMapping(companyId, groups, nowMs) {
      const $set = { groups: [...groups], updatedAt: new Date(nowMs) };
      await settingsOf(companyId).upsertOne({ _id: companyId }, { $set });
    },
    async insertSession(key) {
      await apiKeys.insertOne(key);
    },
    sessionsOf: async (companyId, personId) =>
      (await keysOf(companyId).find({ personId }).sort({ _id: 1 }).toArray()).filter(isSession),
    async *sessionsIn(companyId) {
      for await (const key of keysOf(companyId).find({ personId: { $exists: true } })) {
        if (isSession(key)) yield key;
      }
    },
    async sessionOfKey(keyHash) {
      const found = await apiKeys.findOne({ hash: keyHash });
      return found && isSession(found) ? found : null;
    },
    sessionsOfSid: async (sidHash) => (await apiKeys.find({ sidHash }).toArray()).filter(isSession),
    entriesOf: ({ issuer, subject }) => people.find({ issuer, subject }).toArray(),
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

async function companiesFor(
  db: mongo.Db,
  { issuer, subject }: Identity,
  groups: readonly string[],
): Promise<CompanyForPerson[]> {
  const entries = await collection(db, 'people')
    .find({ issuer, subject })
    .limit(MAX_COMPANIES)
    .toArray();
  const naming = collection(db, 'peopleSettings').find({ 'groups.group': { $in: [...groups] } });
  const mapped = groups.length === 0 ? [] : await naming.limit(MAX_COMPANIES).toArray();
  const ids = [...entries, ...mapped].map(({ companyId }) => companyId);
  return companiesById(db, [...new Set(ids)], entries);
}

/** Reads the companies that are not being removed, oldest first. */
async function companiesById(
  db: mongo.Db,
  companyIds: readonly string[],
  entries: readonly PersonDocument[],
): Promise<CompanyForPerson[]> {
  const ids = { $in: [...companyIds] };
  const companies = collection(db, 'companies').find({ _id: ids }).sort({ _id: 1 });
  const settings = await collection(db, 'peopleSettings').find({ _id: ids }).toArray();
  const mappings = new Map(settings.map(({ _id, groups }) => [_id, groups]));
  const people = new Map(entries.map((person) => [person.companyId, person]));
  return (await companies.toArray()).map((company) => ({
    companyId: company._id,
    name: company.name,
    isSuspended: companyStatusOf(company) !== 'active',
    mapping: mappings.get(company._id) ?? [],
    person: people.get(company._id) ?? null,
  }));
}

async function signIn(
  db: mongo.Db,
  key: Identity & { companyId: string },
  { id, name, email, groupRole, invitedRole, atMs }: SignedInEntry,
): Promise<PersonDocument | null> {
  const at = new Date(atMs);
  const $set = {
    name,
    email,
    lastSignedInAt: at,
    ...(groupRole && { groupRole }),
    ...(invitedRole && { invitedRole }),
  };
  try {
    return await collection(db, 'people').findOneAndUpdate(
      { ...key, _id: id },
      {
        $set,
        $setOnInsert: { createdAt: at },
        ...(groupRole === null && { $unset: { groupRole: '' as const } }),
      },
      { upsert: true, returnDocument: 'after' },
    );
  } catch (error) {
    if (isDuplicateKey(error)) return null;
    throw error;
  }
}
