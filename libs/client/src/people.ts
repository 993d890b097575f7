import type { Operations, QueryOf } from './operations.ts';
import type { ApiPromise, List } from './results.ts';
import type {
  CreatedInvitation,
  CreateInvitation,
  EndedSessions,
  EndPersonSessions,
  Invitation,
  PeopleSettings,
  Person,
  PersonWithSessions,
  UpdatePeopleSettings,
  UpdatePerson,
} from './schema.ts';
import type { CreateOptions, RequestOptions } from './transport.ts';

/** The people who sign in to the dashboard, with what decides about their roles (docs/contract.md C26). */
export class People {
  readonly #api: Operations;

  constructor(api: Operations) {
    this.#api = api;
  }

  list(query?: QueryOf<'GET', '/people'>, options?: RequestOptions): List<Person> {
    return this.#api.bySkip('/people', { query, options });
  }

  /** Shows the sessions of the person too. */
  get(personId: string, options?: RequestOptions): ApiPromise<PersonWithSessions> {
    return this.#api.call('GET', '/people/{personId}', { id: personId, options });
  }

  /** Ends all sessions of the person. */
  update(personId: string, changes: UpdatePerson, options?: RequestOptions): ApiPromise<Person> {
    return this.#api.call('PUT', '/people/{personId}', { id: personId, body: changes, options });
  }

  remove(personId: string, options?: RequestOptions): ApiPromise<undefined> {
    return this.#api.call('DELETE', '/people/{personId}', { id: personId, options });
  }

  /** Ends the session with `sessionId`; all of them without it. */
  endSessions(
    personId: string,
    which: EndPersonSessions = {},
    options?: RequestOptions,
  ): ApiPromise<EndedSessions> {
    const path = '/people/{personId}/end-sessions';
    return this.#api.call('POST', path, { id: personId, body: which, options });
  }

  /** The roles of groups. */
  settings(options?: RequestOptions): ApiPromise<PeopleSettings> {
    return this.#api.call('GET', '/people-settings', { options });
  }

  /** Ends the sessions whose role changes by it. */
  updateSettings(
    changes: UpdatePeopleSettings,
    options?: RequestOptions,
  ): ApiPromise<PeopleSettings> {
    return this.#api.call('PUT', '/people-settings', { body: changes, options });
  }

  /** The result has the URL, which makes whoever signs in with it a person of the company. */
  invite(invitation: CreateInvitation, options?: CreateOptions): ApiPromise<CreatedInvitation> {
    return this.#api.create('/invitations', { body: invitation, options });
  }

  /** Those that nobody has used. */
  invitations(query?: QueryOf<'GET', '/invitations'>, options?: RequestOptions): List<Invitation> {
    return this.#api.bySkip('/invitations', { query, options });
  }

  revokeInvitation(invitationId: string, options?: RequestOptions): ApiPromise<undefined> {
    return this.#api.call('DELETE', '/invitations/{invitationId}', { id: invitationId, options });
  }
}
