import type { Scope } from './access.ts';

/**
 * The people who sign in at the issuer of an installation (docs/contract.md C26). A person is an issuer and a subject;
 * groups and invitations decide about roles, names and e-mail addresses about nothing.
 */

/** The scopes of each role, from the lowest to the highest. A new role is one more line. */
const SCOPES_OF = {
  viewer: ['read'],
  support: ['read', 'messages:write'],
  admin: ['admin'],
} as const satisfies Record<string, readonly Scope[]>;

export type Role = keyof typeof SCOPES_OF;

/** From the lowest to the highest. */
export const ROLES = Object.keys(SCOPES_OF) as [Role, ...Role[]];

/** Returns the scopes of the API key of a session with this role. */
export const scopesOfRole = (role: Role): readonly Scope[] => SCOPES_OF[role];

/** Whether the role includes everything of the other one. */
export const includesRole = (role: Role, other: Role): boolean =>
  ROLES.indexOf(role) >= ROLES.indexOf(other);

function higherOf(one: Role | null, other: Role | null): Role | null {
  if (one === null || other === null) return one ?? other;
  return includesRole(one, other) ? one : other;
}

/** Everyone in this group of the issuer has the role. Groups are compared exactly. */
export interface GroupRole {
  group: string;
  role: Role;
}

/** Returns the text of the admin command and of the audit log, such as `helpdesk=support`. */
export const groupRoleText = ({ group, role }: GroupRole): string => `${group}=${role}`;

/** Returns the highest role of these groups; null for none. */
export function roleByGroup(groups: readonly string[], mapping: readonly GroupRole[]): Role | null {
  const own = new Set(groups);
  return mapping
    .filter(({ group }) => own.has(group))
    .reduce<Role | null>((highest, { role }) => higherOf(highest, role), null);
}

export type RoleSource = 'group' | 'invitation';

export interface Granted {
  role: Role;
  source: RoleSource;
}

/** The roles of one person in one company; each is null where nothing grants one. */
export interface RoleGrants {
  byGroup: Role | null;
  byInvitation: Role | null;
}

/** Returns the higher of the two roles; null without any. Of two equal ones the group is the source. */
export function roleOf({ byGroup, byInvitation }: RoleGrants): Granted | null {
  const role = higherOf(byGroup, byInvitation);
  return role === null ? null : { role, source: role === byGroup ? 'group' : 'invitation' };
}

/** Claims of an ID token, or of a response of UserInfo. */
export type Claims = Readonly<Record<string, unknown>>;

/**
 * The groups that claims name. `incomplete`: the issuer has left some out, which is never the same as none. `absent`:
 * these claims do not speak of groups.
 */
export type ClaimedGroups =
  { kind: 'known'; groups: readonly string[] } | { kind: 'incomplete' } | { kind: 'absent' };

/** Microsoft Entra leaves the claim out beyond 200 groups; a list beyond this bound is refused in the same way. */
const MAX_GROUPS = 1_000;
export const MAX_GROUP_CHARS = 256;

/** Reads the groups from the claim with this name, else from the one at this path, such as `realm_access.roles`. */
export function readGroups(claims: Claims, claim: string): ClaimedGroups {
  if (isLeftOut(claims, claim)) return { kind: 'incomplete' };
  const value = ownOf(claims, claim) ?? atPath(claims, claim.split('.'));
  const listed = typeof value === 'string' ? [value] : value;
  if (!Array.isArray(listed)) return { kind: 'absent' };
  if (listed.length > MAX_GROUPS) return { kind: 'incomplete' };
  const groups = listed.filter(isGroup);
  return { kind: 'known', groups: [...new Set(groups)] };
}

/** No mapping names a group that is longer, so that it is not kept. */
const isGroup = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && Array.from(value).length <= MAX_GROUP_CHARS;

/** OpenID Connect Core, 5.6.2: distributed claims; `hasgroups` is that of Microsoft Entra in front channels. */
function isLeftOut(claims: Claims, claim: string): boolean {
  const elsewhere = claims._claim_names;
  const [first = ''] = claim.split('.');
  if (isObject(elsewhere) && (Object.hasOwn(elsewhere, claim) || Object.hasOwn(elsewhere, first))) {
    return true;
  }
  return claim === 'groups' && (claims.hasgroups === true || claims.hasgroups === 'true');
}

const isObject = (value: unknown): value is Claims =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const ownOf = (claims: Claims, name: string): unknown =>
  Object.hasOwn(claims, name) ? claims[name] : undefined;

function atPath(claims: Claims, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, name) => (isObject(at) ? ownOf(at, name) : undefined), claims);
}

/** The texts about a person that pages show. */
export interface Profile {
  name: string | null;
  email: string | null;
}

const MAX_NAME_CHARS = 100;
/** RFC 5321, 4.5.3.1: 64 characters, the @ and 255. */
const MAX_EMAIL_CHARS = 320;

/** Reads name and e-mail address; a text that is too long ends early. */
export function readProfile(claims: Claims): Profile {
  const email = shownText(claims.email, MAX_EMAIL_CHARS);
  const name =
    shownText(claims.name, MAX_NAME_CHARS) ?? shownText(claims.preferred_username, MAX_NAME_CHARS);
  return { name: name ?? (email === null ? null : shownText(email, MAX_NAME_CHARS)), email };
}

/** Control characters, and those that change the direction of a text, could make one name look like another. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

function shownText(value: unknown, maxChars: number): string | null {
  if (typeof value !== 'string') return null;
  // Two units of UTF-16 are one character at most.
  const seen = value
    .slice(0, 4 * maxChars)
    .toWellFormed()
    .replaceAll(UNSEEN, '')
    .trim();
  const text = Array.from(seen).slice(0, maxChars).join('');
  return text === '' ? null : text;
}
