import { companyStatusOf } from '@posthorn/domain/company.ts';
import type { GroupRole, Profile, Role } from '@posthorn/domain/people.ts';
import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import { isDuplicateKey } from '../connect.ts';
import type { PersonDocument } from '../documents.ts';
import { createPersonSessionStore, type PersonSessionStore } from './person-sessions.ts';

export { type SessionKey, sidHashOf } from './person-sessions.ts';

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

/** People of companies, and their sessions, whose API keys they are. */
export interface PeopleStore extends PersonSessionStore {
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
  /** The entries of the person in every company. */
  entriesOf: (identity: Identity) => Promise<PersonDocument[]>;
  readMapping: (companyId: string) => Promise<GroupRole[]>;
  writeMapping: (companyId: string, groups: readonly GroupRole[], nowMs: number) => Promise<void>;
}

/** More companies are offered to nobody. */
const MAX_COMPANIES = 1_000;

export function createPeopleStore(db: mongo.Db): PeopleStore {
  const people = collection(db, 'people');
  const peopleOf = (companyId: string) => documentsOf(db, 'people', companyId);
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
      const role = invitedRole && { invitedRole };
      const disabling = isDisabled === true && { disabledAt: new Date(nowMs) };
      const changed = await peopleOf(companyId).setOne({ _id }, { ...role, ...disabling });
      if (!changed || isDisabled !== false) return changed;
      const after = await peopleOf(companyId).updateOne({ _id }, { $unset: { disabledAt: true } });
      return after && { before: changed.before, after };
    },
    async remove(companyId, _id) {
      const found = await peopleOf(companyId).findOne({ _id });
      if (found) await peopleOf(companyId).deleteMany({ _id });
      return found;
    },
    entriesOf: ({ issuer, subject }) => people.find({ issuer, subject }).toArray(),
    readMapping: async (companyId) =>
      (await settingsOf(companyId).findOne({ _id: companyId }))?.groups ?? [],
    async writeMapping(companyId, groups, nowMs) {
      const $set = { groups: [...groups], updatedAt: new Date(nowMs) };
      await settingsOf(companyId).upsertOne({ _id: companyId }, { $set });
    },
    ...createPersonSessionStore(db),
  };
}

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
