import type { GroupRole, Granted, Role } from '@posthorn/domain/people.ts';
import { roleOf } from '@posthorn/domain/people.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import type { PeopleStore, SessionKey } from '@posthorn/platform/mongo/companies/people.ts';
import type { PersonDocument } from '@posthorn/platform/mongo/documents.ts';
import { ApiError, foundOr404 } from '../api-error.ts';
import type { PersonSessions } from './person-sessions.ts';

interface PeopleDeps {
  people: PeopleStore;
  personSessions: PersonSessions;
  /** OIDC_ISSUER is set. */
  hasIssuer: boolean;
  nowMs: () => number;
}

/** A person as admins see them. */
export interface KnownPerson extends Granted {
  document: PersonDocument;
  /** How many API keys they made. */
  apiKeys: number;
}

interface Changed<Value> {
  before: Value;
  after: Value;
}

/**
 * Throws ApiError 404 for a company without people while nobody can sign in (docs/contract.md C26.1): the entries of people
 * who could are still shown, changed and removed.
 */
export async function assertPeopleExist(
  { people, hasIssuer }: PeopleDeps,
  companyId: string,
): Promise<void> {
  if (hasIssuer || (await people.hasPeople(companyId))) return;
  throw new ApiError('route_not_found', 'Nobody signs in here: OIDC_ISSUER is not set.');
}

export async function listPeople(
  deps: PeopleDeps,
  companyId: string,
  page: { skip: number; limit: number },
): Promise<KnownPerson[]> {
  await assertPeopleExist(deps, companyId);
  const found = await deps.people.list(companyId, page);
  const ids = found.map(({ _id }) => _id);
  const counts = await deps.people.countKeysMadeBy(companyId, ids);
  return found.map((document) => known(document, counts.get(document._id) ?? 0));
}

/** Throws ApiError 404 for an unknown one. */
export async function readPerson(
  deps: PeopleDeps,
  companyId: string,
  id: string,
): Promise<KnownPerson & { sessions: SessionKey[] }> {
  const document = await required(deps, companyId, id);
  const sessions = await deps.people.sessionsOf(companyId, id);
  return { ...(await withKeys(deps, document)), sessions };
}

/**
 * Changes the role or disables. Either ends all sessions of the person. Throws ApiError 404 for an unknown one, 409 for the
 * role of a person whom nobody has invited.
 */
export async function changePerson(
  deps: PeopleDeps,
  { companyId, id }: { companyId: string; id: string },
  { role, disabled }: { role?: Role | undefined; disabled?: boolean | undefined },
): Promise<Changed<KnownPerson>> {
  const { people, personSessions, nowMs } = deps;
  const { invitedRole } = await required(deps, companyId, id);
  if (role !== undefined && invitedRole === undefined) throw new ApiError('role_by_group');
  const change = {
    ...(role !== undefined && { invitedRole: role }),
    ...(disabled !== undefined && { isDisabled: disabled }),
  };
  const changed = foundOr404(await people.change(companyId, id, change, nowMs()), 'person');
  const isOther = changed.before.invitedRole !== changed.after.invitedRole;
  if (isOther || disabled === true) await personSessions.endAllOf(changed.after);
  const after = await withKeys(deps, changed.after);
  return { before: known(changed.before, after.apiKeys), after };
}

/** API keys of one person that the audit log names. */
const MAX_NAMED = 1_000;

/** Forgets the person, and ends their sessions. Returns the API keys that stay. Throws ApiError 404 for an unknown one. */
export async function removePerson(
  deps: PeopleDeps,
  companyId: string,
  id: string,
): Promise<{ person: KnownPerson; keyIds: string[] }> {
  await assertPeopleExist(deps, companyId);
  const { people, personSessions } = deps;
  const removed = foundOr404(await people.remove(companyId, id), 'person');
  await personSessions.endAllOf(removed);
  const keys = await people.keysMadeBy(companyId, id, MAX_NAMED);
  return { person: known(removed, keys.length), keyIds: keys.map(({ _id }) => _id) };
}

/** Ends one session, or all of the person. Throws ApiError 404 for an unknown person. */
export async function endSessionsOf(
  deps: PeopleDeps,
  { companyId, id }: { companyId: string; id: string },
  sessionId: string | undefined,
): Promise<number> {
  await required(deps, companyId, id);
  const all = await deps.people.sessionsOf(companyId, id);
  const ended = all.filter(({ _id }) => sessionId === undefined || _id === sessionId);
  return deps.personSessions.end(companyId, ended);
}

/** Replaces the roles of groups, and ends the sessions whose role changes by it. Returns the roles of before. */
export async function changeMapping(
  deps: PeopleDeps,
  companyId: string,
  groups: readonly GroupRole[],
): Promise<GroupRole[]> {
  const { people, personSessions, nowMs } = deps;
  const before = await people.readMapping(companyId);
  await people.writeMapping(companyId, groups, nowMs());
  await personSessions.endChanged(companyId, groups);
  return before;
}

async function required(deps: PeopleDeps, companyId: string, id: string): Promise<PersonDocument> {
  await assertPeopleExist(deps, companyId);
  return foundOr404(await deps.people.get(companyId, id), 'person');
}

async function withKeys({ people }: PeopleDeps, document: PersonDocument): Promise<KnownPerson> {
  const { _id, companyId } = document;
  const counts = await people.countKeysMadeBy(companyId, [_id]);
  return known(document, counts.get(_id) ?? 0);
}

function known(document: PersonDocument, apiKeys: number): KnownPerson {
  const { groupRole: byGroup = null, invitedRole: byInvitation = null } = document;
  const granted = roleOf({ byGroup, byInvitation });
  if (!granted) throw new ImpossibleError('a person is stored with a role');
  return { document, apiKeys, ...granted };
}
