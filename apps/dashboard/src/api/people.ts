import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { answerOf, api, dataOf, type Schemas } from './client.ts';
import { nextSkip } from './projects.ts';
import { FRESH_MS } from './query-client.ts';
import type { Role } from './session.ts';

export type Person = Schemas['Person'];
export type OpenInvitation = Schemas['Invitation'];
export type GroupRole = Schemas['PeopleSettings']['groups'][number];

/** The rights of each role in words, from the lowest to the highest. */
export const ROLE_WORDS: Record<Role, string> = {
  viewer: 'sees everything but secrets',
  support: 'also resends, cancels, replays, holds and sends',
  admin: 'everything, people too',
};

export const ROLES = Object.keys(ROLE_WORDS) as Role[];

/** For fields in which a role is chosen. */
export const ROLE_CHOICES = ROLES.map((value) => ({
  value,
  label: `${value}: ${ROLE_WORDS[value]}`,
}));

const PER_PAGE = 100;

export const peopleQuery = infiniteQueryOptions({
  queryKey: ['people', 'list'],
  staleTime: FRESH_MS,
  initialPageParam: 0,
  queryFn: ({ pageParam: skip }) =>
    dataOf(api.GET('/people', { params: { query: { limit: PER_PAGE, skip } } })),
  getNextPageParam: (last, _pages, skip) => nextSkip(last.length, PER_PAGE, skip),
});

/** One person with the sessions that they have now. */
export const personQuery = (personId: string) =>
  queryOptions({
    queryKey: ['people', personId],
    staleTime: FRESH_MS,
    queryFn: () => dataOf(api.GET('/people/{personId}', ofPerson(personId))),
  });

export function changePerson(personId: string, body: Schemas['UpdatePerson']): Promise<unknown> {
  return answerOf(api.PUT('/people/{personId}', { ...ofPerson(personId), body }));
}

export function removePerson(personId: string): Promise<unknown> {
  return answerOf(api.DELETE('/people/{personId}', ofPerson(personId)));
}

/** Ends one session of a person, or all of them. */
export function endSessions(personId: string, sessionId?: string): Promise<unknown> {
  const body = sessionId === undefined ? {} : { sessionId };
  return answerOf(api.POST('/people/{personId}/end-sessions', { ...ofPerson(personId), body }));
}

const ofPerson = (personId: string) => ({ params: { path: { personId } } });

export const invitationsQuery = queryOptions({
  queryKey: ['people', 'invitations'],
  staleTime: FRESH_MS,
  queryFn: () => dataOf(api.GET('/invitations', { params: { query: { limit: PER_PAGE } } })),
});

export function invite(body: Schemas['CreateInvitation']) {
  return dataOf(api.POST('/invitations', { body }));
}

export function revokeInvitation(invitationId: string): Promise<unknown> {
  const params = { path: { invitationId } };
  return answerOf(api.DELETE('/invitations/{invitationId}', { params }));
}

export const peopleSettingsQuery = queryOptions({
  queryKey: ['people', 'settings'],
  staleTime: FRESH_MS,
  queryFn: () => dataOf(api.GET('/people-settings')),
});

export function saveGroups(groups: readonly GroupRole[]): Promise<unknown> {
  return answerOf(api.PUT('/people-settings', { body: { groups: [...groups] } }));
}
