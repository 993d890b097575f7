import type { AuditLog } from '@posthorn/platform/mongo/companies/audit-log.ts';
import type { PeopleStore, SessionKey } from '@posthorn/platform/mongo/companies/people.ts';
import type { LoggedOut } from './issuer.ts';
import type { PersonSessions } from './person-sessions.ts';

interface Deps {
  people: Pick<PeopleStore, 'sessionsOfSid' | 'entriesOf' | 'sessionsOf'>;
  personSessions: Pick<PersonSessions, 'end'>;
  auditLog: Pick<AuditLog, 'recordChange'>;
}

/**
 * Ends the sessions that the issuer has ended, in every company. A repeat finds none, and does no harm. The audit log has
 * one event for each person.
 */
export type LogOutByIssuer = (loggedOut: LoggedOut) => Promise<void>;

export function createLogOutByIssuer({ people, personSessions, auditLog }: Deps): LogOutByIssuer {
  async function sessionsFor(loggedOut: LoggedOut): Promise<SessionKey[]> {
    if (loggedOut.kind === 'session') return people.sessionsOfSid(loggedOut.sidHash);
    const entries = await people.entriesOf(loggedOut.identity);
    const found = entries.map(({ companyId, _id }) => people.sessionsOf(companyId, _id));
    return (await Promise.all(found)).flat();
  }
  return async (loggedOut) => {
    const byPerson = Map.groupBy(await sessionsFor(loggedOut), ({ personId }) => personId);
    for (const [personId, sessions] of byPerson) {
      const [{ companyId } = { companyId: '' }] = sessions;
      const change = { field: 'sessions', before: sessions.length, after: null };
      const action = {
        companyId,
        action: 'person.sessions_ended' as const,
        actor: { kind: 'system' as const },
        target: { kind: 'person' as const, id: personId },
        clientAddress: null,
        requestId: null,
        changes: [change],
      };
      await auditLog.recordChange(action, () => personSessions.end(companyId, sessions));
    }
  };
}
