import type { IdPrefix } from '@posthorn/domain/ids.ts';
import { type GroupRole, type Role, scopesOfRole } from '@posthorn/domain/people.ts';
import { makeApiKey } from '@posthorn/platform/mongo/companies/companies.ts';
import type { PeopleStore, SessionKey } from '@posthorn/platform/mongo/companies/people.ts';
import type { PersonDocument } from '@posthorn/platform/mongo/documents.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import type { Vault } from '@posthorn/platform/security/vault.ts';

/** What a session keeps of the sign-in that began it. */
export interface KeptSignIn {
  /** Null for a list that was not complete. */
  groups: readonly string[] | null;
  sidHash: string | null;
  /** For the way out at the issuer; null for one that is too long. */
  idToken: string | null;
  clientAddress: string | null;
  userAgent: string | null;
  endsAtMs: number;
}

/**
 * The sessions of people. Each is an API key that nobody knows, with the scopes of a role: so what ends and bounds keys does
 * the same for them (docs/decisions/0065-a-persons-session-is-a-key.md).
 */
export interface PersonSessions {
  /** Makes the key of a session, which `begin` stores. */
  make: (
    person: Pick<PersonDocument, '_id' | 'companyId'>,
    role: Role,
    kept: KeptSignIn,
  ) => SessionKey;
  /** The oldest session of a person with too many ends. */
  begin: (session: SessionKey) => Promise<void>;
  /** Ends sessions of one company: here at once, at other gateways within two seconds. Returns how many there were. */
  end: (companyId: string, sessions: readonly SessionKey[]) => Promise<number>;
  endAllOf: (person: Pick<PersonDocument, '_id' | 'companyId'>) => Promise<number>;
  /** Ends the sessions whose role is another one by this mapping. */
  endChanged: (companyId: string, mapping: readonly GroupRole[]) => Promise<number>;
  idTokenOf: (session: SessionKey) => string | null;
}

interface PersonSessionsDeps {
  people: Pick<
    PeopleStore,
    'insertSession' | 'sessionsOf' | 'sessionsChangedBy' | 'removeSessions'
  >;
  vault: Vault;
  invalidate: Invalidate;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

const MAX_SESSIONS = 20;
const MAX_ID_TOKEN_BYTES = 4_096;
const MAX_USER_AGENT_CHARS = 300;

export function createPersonSessions(deps: PersonSessionsDeps): PersonSessions {
  const { people, vault, invalidate } = deps;

  async function end(companyId: string, sessions: readonly SessionKey[]): Promise<number> {
    if (sessions.length === 0) return 0;
    const ended = await people.removeSessions(
      companyId,
      sessions.map(({ _id }) => _id),
    );
    await invalidate(...sessions.map(({ hash: id }) => ({ companyId, id })));
    return ended;
  }

  return {
    make: (person, role, kept) => makeSession(deps, person, role, kept),
    async begin(session) {
      const { companyId, personId } = session;
      await people.insertSession(session);
      const all = await people.sessionsOf(companyId, personId);
      await end(companyId, all.slice(0, -MAX_SESSIONS));
    },
    end,
    endAllOf: async ({ companyId, _id }) => end(companyId, await people.sessionsOf(companyId, _id)),
    async endChanged(companyId, mapping) {
      let ended = 0;
      for await (const sessions of people.sessionsChangedBy(companyId, mapping)) {
        ended += await end(companyId, sessions);
      }
      return ended;
    },
    idTokenOf({ _id, companyId, idToken }) {
      if (idToken === undefined) return null;
      try {
        return vault.open(idToken, bindingOf(companyId, _id));
      } catch {
        // The encryption key was removed since. The issuer then asks whether to sign out.
        return null;
      }
    },
  };
}

const bindingOf = (companyId: string, ownerId: string) => ({
  companyId,
  ownerId,
  field: 'idToken',
});

function makeSession(
  { vault, newId, nowMs }: PersonSessionsDeps,
  { _id: personId, companyId }: Pick<PersonDocument, '_id' | 'companyId'>,
  role: Role,
  { groups, sidHash, idToken, clientAddress, userAgent, endsAtMs }: KeptSignIn,
): SessionKey {
  const endsAt = new Date(endsAtMs);
  const rights = { scopes: [...scopesOfRole(role)], expiresAt: endsAt };
  const { document } = makeApiKey({ newId, nowMs }, companyId, 'Sign-in of a person', rights);
  const keptToken =
    idToken !== null && Buffer.byteLength(idToken) <= MAX_ID_TOKEN_BYTES
      ? vault.seal(idToken, bindingOf(companyId, document._id))
      : null;
  return {
    ...document,
    removeAt: endsAt,
    personId,
    ...(sidHash !== null && { sidHash }),
    ...(keptToken !== null && { idToken: keptToken }),
    signIn: {
      role,
      groups: groups && [...groups],
      clientAddress,
      userAgent: userAgent?.slice(0, MAX_USER_AGENT_CHARS) ?? null,
    },
  };
}
