import type { IdPrefix } from '@posthorn/domain/ids.ts';
import {
  roleByGroup,
  scopesOfRole,
  roleOf,
  type Granted,
  type Profile,
  type Role,
} from '@posthorn/domain/people.ts';
import type { FoundLink, LinkStore } from '@posthorn/platform/mongo/companies/links.ts';
import type {
  CompanyForPerson,
  Identity,
  PeopleStore,
  SessionKey,
} from '@posthorn/platform/mongo/companies/people.ts';
import type { InvitationGrant, PersonDocument } from '@posthorn/platform/mongo/documents.ts';
import { ApiError, unavailable } from '../api-error.ts';
import type { ErrorCode } from '../error-codes.ts';
import type { RecordRequest } from '../http/audit-requests.ts';
import { sessionEnded } from '../keys/authenticate.ts';
import type { Session, SignInSource } from '../keys/sessions.ts';
import type { Caller } from '../keys/rights.ts';
import type { Issued } from './issuer.ts';
import type { KeptSignIn, PersonSessions } from './person-sessions.ts';

/** What a person asks for beside a session. */
export interface AskedEntry {
  /** Null for the company used last. */
  companyId: string | null;
  /** The hash of the token of an invitation. */
  invitation: string | null;
  /** The hash of the key of the session that the browser has. */
  replaces: string | null;
}

/** A company that is open to a person. */
export interface OpenCompany {
  id: string;
  name: string;
  role: Role;
}

/** Begins and ends the sessions of people (docs/contract.md C26). */
export interface PeopleSignIn {
  /**
   * Begins a session. Throws ApiError 403 `no_role`, `groups_unknown`, `person_disabled` and `company_suspended`, and what a
   * link is refused with for an invitation. Then nothing is stored.
   */
  enter: (issued: Issued, asked: AskedEntry, source: SignInSource) => Promise<Session>;
  /** Begins a session in another company, until the same end. Throws what `enter` does. */
  change: (session: Session, companyId: string, source: SignInSource) => Promise<Session>;
  /** The companies that are open to the person of a session, oldest first; null when it is no person's. */
  companiesOf: (session: Session) => Promise<OpenCompany[] | null>;
  /**
   * Ends the session, and with `everywhere` all of the person, in every company. Returns its ID token, null for
   * none; undefined when it is no person's.
   */
  out: (
    session: Session,
    everywhere: boolean,
    source: SignInSource,
  ) => Promise<string | null | undefined>;
}

export interface PeopleSignInDeps {
  people: PeopleStore;
  personSessions: PersonSessions;
  links: Pick<LinkStore, 'findByHash' | 'useByHash'>;
  recordRequest: RecordRequest;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  /** OIDC_SESSION, in milliseconds. */
  sessionMs: number;
}

/** A company, and the role of the person there. */
interface Opening extends CompanyForPerson {
  granted: Granted | null;
  byGroup: Role | null;
}

interface Invited {
  companyId: string;
  tokenHash: string;
  grant: InvitationGrant;
}

/** A person at the door of a company. */
interface Entering {
  identity: Identity;
  profile: Profile;
  kept: KeptSignIn;
  invited: Invited | null;
}

export function createPeopleSignIn(deps: PeopleSignInDeps): PeopleSignIn {
  const { people, nowMs, sessionMs } = deps;

  const sessionKeyOf = createSessionKeyOf(people);
  const out = createOut(deps, sessionKeyOf);

  return {
    async enter(issued, asked, source) {
      const { identity, profile, sidHash, idToken } = issued;
      const groups = groupsOf(issued);
      const invited = asked.invitation === null ? null : await findInvited(deps, asked.invitation);
      const companyId = invited?.companyId ?? asked.companyId;
      const found = await companiesFor(deps, { identity, groups, companyId });
      const openings = found.map((company) => openingOf(company, groups, invited?.grant.role));
      const endsAtMs = nowMs() + sessionMs;
      const kept = { groups, sidHash, idToken, ...clientOf(source), endsAtMs };
      const entering = { identity, profile, kept, invited };
      const session = await enterCompany(deps, chosenOf(openings, groups), entering, source);
      await endReplaced(
        deps,
        { keyHash: asked.replaces, identity, companyId: session.companyId },
        (replaced) => out(replaced, false, source),
      );
      return session;
    },
    async change(session, companyId, source) {
      const key = await sessionKeyOf(session);
      const person = key && (await people.get(key.companyId, key.personId));
      if (!person) throw sessionEnded();
      return changeCompany(deps, { key, person, companyId }, source);
    },
    async companiesOf(session) {
      const key = await sessionKeyOf(session);
      const person = key && (await people.get(key.companyId, key.personId));
      if (!person) return null;
      const { groups } = key.signIn;
      const found = await people.companiesFor(person, groups ?? []);
      return found
        .map((company) => openingOf(company, groups))
        .filter(isOpen)
        .map(describeOpen);
    },
    out,
  };
}

const createSessionKeyOf =
  (people: PeopleStore) =>
  async ({ kind, keyHash }: Session): Promise<SessionKey | null> =>
    kind === 'company' ? people.sessionOfKey(keyHash) : null;

/** What the sign-in of the session said counts on, and so does its end. */
async function changeCompany(
  deps: PeopleSignInDeps,
  { key, person, companyId }: { key: SessionKey; person: PersonDocument; companyId: string },
  source: SignInSource,
): Promise<Session> {
  const { people, personSessions, nowMs } = deps;
  const { issuer, subject } = person;
  const { groups, clientAddress, userAgent } = key.signIn;
  const found = await people.companyFor(person, companyId);
  const openings = found ? [openingOf(found, groups)] : [];
  const kept = {
    groups,
    sidHash: key.sidHash ?? null,
    idToken: personSessions.idTokenOf(key),
    clientAddress,
    userAgent,
    endsAtMs: key.expiresAt?.getTime() ?? nowMs(),
  };
  const entering = { identity: { issuer, subject }, profile: person, kept, invited: null };
  const entered = await enterCompany(deps, chosenOf(openings, groups), entering, source);
  await personSessions.end(key.companyId, [key]);
  return entered;
}

function createOut(
  deps: PeopleSignInDeps,
  sessionKeyOf: ReturnType<typeof createSessionKeyOf>,
): PeopleSignIn['out'] {
  const { people, personSessions } = deps;
  return async (session, everywhere, source) => {
    const key = await sessionKeyOf(session);
    if (!key) return undefined;
    const person = await people.get(key.companyId, key.personId);
    await recordOut(deps, { key, keys: [key], name: person?.name ?? null }, source);
    for (const entry of everywhere && person ? await people.entriesOf(person) : []) {
      const keys = await people.sessionsOf(entry.companyId, entry._id);
      const [first] = keys;
      if (first) await recordOut(deps, { key: first, keys, name: entry.name }, source);
    }
    return personSessions.idTokenOf(key);
  };
}

/** Null for a list that is not complete: it stands for no groups at all, and for nobody without any. */
function groupsOf({ groups }: Issued): readonly string[] | null {
  switch (groups.kind) {
    case 'known':
      return groups.groups;
    case 'absent':
      return [];
    case 'incomplete':
      return null;
  }
}

const clientOf = ({ address, userAgent }: SignInSource) => ({
  clientAddress: address ?? null,
  userAgent: userAgent ?? null,
});

async function companiesFor(
  { people }: PeopleSignInDeps,
  asked: { identity: Identity; groups: readonly string[] | null; companyId: string | null },
): Promise<CompanyForPerson[]> {
  const { identity, groups, companyId } = asked;
  if (companyId === null) return people.companiesFor(identity, groups ?? []);
  const found = await people.companyFor(identity, companyId);
  return found ? [found] : [];
}

function openingOf(
  company: CompanyForPerson,
  groups: readonly string[] | null,
  invitedRole?: Role,
): Opening {
  const byGroup = groups && roleByGroup(groups, company.mapping);
  const byInvitation = invitedRole ?? company.person?.invitedRole ?? null;
  return { ...company, byGroup, granted: roleOf({ byGroup, byInvitation }) };
}

const isOpen = (opening: Opening): opening is Opening & { granted: Granted } =>
  opening.granted !== null && !opening.isSuspended && opening.person?.disabledAt === undefined;

/** Returns the open company that was used last, else the oldest one. Throws ApiError 403 without any. */
function chosenOf(
  openings: readonly Opening[],
  groups: readonly string[] | null,
): Opening & { granted: Granted } {
  const usedAtMs = ({ person }: Opening): number => person?.lastSignedInAt.getTime() ?? 0;
  const [chosen] = openings.filter(isOpen).sort((one, other) => usedAtMs(other) - usedAtMs(one));
  if (chosen) return chosen;
  throw new ApiError(refusalOf(openings, groups));
}

const describeOpen = ({
  companyId,
  name,
  granted,
}: Opening & { granted: Granted }): OpenCompany => ({
  id: companyId,
  name,
  role: granted.role,
});

function refusalOf(openings: readonly Opening[], groups: readonly string[] | null): ErrorCode {
  if (openings.some(({ person }) => person?.disabledAt !== undefined)) return 'person_disabled';
  if (openings.some(({ granted }) => granted !== null)) return 'company_suspended';
  return groups === null ? 'groups_unknown' : 'no_role';
}

async function findInvited(
  { links, nowMs }: Pick<PeopleSignInDeps, 'links' | 'nowMs'>,
  tokenHash: string,
): Promise<Invited> {
  const { companyId, invitation } = linkOf(
    await links.findByHash('invitation', tokenHash, nowMs()),
  );
  if (!invitation) throw new ApiError('link_unknown');
  return { companyId, tokenHash, grant: invitation };
}

function linkOf(found: FoundLink) {
  if (found.kind === 'refused') throw new ApiError(`link_${found.refusal}`);
  return found.link;
}

const SIGNED_IN = {
  method: 'post',
  audit: { action: 'person.signed_in', target: 'person' },
} as const;
const SIGNED_OUT = {
  method: 'post',
  audit: { action: 'person.signed_out', target: 'person' },
} as const;

/** Stores the person and the key of their session, within the audit log. */
async function enterCompany(
  deps: PeopleSignInDeps,
  { companyId, person, byGroup, granted: { role } }: Opening & { granted: Granted },
  { identity, profile, kept, invited }: Entering,
  source: SignInSource,
): Promise<Session> {
  const { people, personSessions, links, nowMs } = deps;
  const { name, email } = profile;
  const id = person?._id ?? deps.newId('usr');
  const key = personSessions.make({ _id: id, companyId }, role, kept);
  const caller = personCaller(key, name);
  const fields = { role, invitationId: invited?.grant.id };
  const request = { caller, params: { personId: id }, fields, ...requestOf(source) };
  await deps.recordRequest(SIGNED_IN, request, async () => {
    if (invited) linkOf(await links.useByHash('invitation', invited.tokenHash, nowMs()));
    const invitedRole = invited?.grant.role ?? null;
    const entry = { id, name, email, groupRole: byGroup, invitedRole, atMs: nowMs() };
    // Null: the first sign-in of the person in another tab has made the entry in this moment.
    if (!(await people.signIn(companyId, identity, entry))) throw unavailable('changed_by_others');
    await personSessions.begin(key);
    await assertStillOpen(deps, identity, key);
    return {};
  });
  return { kind: 'company', companyId, keyHash: key.hash, endsAtMs: kept.endsAtMs };
}

/** Whoever changed a role, or disabled the person, since it was read has ended the sessions that there were. */
async function assertStillOpen(
  { people, personSessions }: PeopleSignInDeps,
  identity: Identity,
  key: SessionKey,
): Promise<void> {
  const { companyId, signIn } = key;
  const found = await people.companyFor(identity, companyId);
  const now = found && openingOf(found, signIn.groups);
  if (now && isOpen(now) && now.granted.role === signIn.role) return;
  await personSessions.end(companyId, [key]);
  throw unavailable('changed_by_others');
}

function personCaller(
  { companyId, _id: keyId, personId, signIn }: SessionKey,
  name: string | null,
): Caller {
  const { role } = signIn;
  const person = { id: personId, name, role };
  return { companyId, keyId, scopes: scopesOfRole(role), appId: null, person };
}

const requestOf = ({ address, requestId }: SignInSource) => ({
  requestId,
  clientAddress: address ?? null,
});

async function recordOut(
  { personSessions, recordRequest }: PeopleSignInDeps,
  { key, keys, name }: { key: SessionKey; keys: readonly SessionKey[]; name: string | null },
  source: SignInSource,
): Promise<void> {
  const { companyId, personId } = key;
  const params = { personId };
  const request = { caller: personCaller(key, name), params, fields: {}, ...requestOf(source) };
  await recordRequest(SIGNED_OUT, request, async () => {
    const sessions = await personSessions.end(companyId, keys);
    return { changed: { before: { sessions }, after: {} } };
  });
}

/** A browser has one session: what another person, or this one in another company, had in it would be left open. */
async function endReplaced(
  { people }: PeopleSignInDeps,
  {
    keyHash,
    identity,
    companyId,
  }: { keyHash: string | null; identity: Identity; companyId: string },
  end: (session: Session) => Promise<unknown>,
): Promise<void> {
  const key = keyHash === null ? null : await people.sessionOfKey(keyHash);
  if (!key) return;
  const person: PersonDocument | null = await people.get(key.companyId, key.personId);
  const isSame = person?.issuer === identity.issuer && person.subject === identity.subject;
  if (isSame && key.companyId === companyId) return;
  await end({ kind: 'company', companyId: key.companyId, keyHash: key.hash, endsAtMs: 0 });
}
