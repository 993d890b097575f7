import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { showSession } from './client.ts';
import { ApiFailure } from './failure.ts';
import { type SignedOut, signedOutQuery } from './issuer.ts';
import { type Session, type SessionEnd, sessionEndQuery, sessionQuery } from './session.ts';

const MOST_RETRIES = 2;

/**
 * A session that has ended, or whose key was revoked, leads to the sign-in page; the address stays. Where there is none
 * already, as when a wrong key was given or after signing out, none has ended.
 */
export function noticeEndOfSession(error: unknown): void {
  const isSignedOut = queryClient.getQueryData(sessionQuery.queryKey) === null;
  if (error instanceof ApiFailure && error.status === 401 && !isSignedOut) {
    changeSession(null, error);
  }
}

/** Goes on as whoever signed in, null for nobody, without anything that the session before has loaded. */
export function changeSession(session: Session | null, why: ApiFailure | null = null): void {
  const before = queryClient.getQueryData(sessionQuery.queryKey) ?? null;
  const wasOfPerson = before !== null && before.person !== null;
  if (session === null) showSession(null);
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' });
  queryClient.getMutationCache().clear();
  const end: SessionEnd | null = why === null ? null : { why, wasOfPerson };
  queryClient.setQueryData(sessionEndQuery.queryKey, end);
  queryClient.setQueryData(signedOutQuery.queryKey, null);
  queryClient.setQueryData(sessionQuery.queryKey, session);
}

/** Shows that a person has signed out, with the ways on from there. */
export function showSignedOut(signedOut: SignedOut): void {
  changeSession(null);
  queryClient.setQueryData(signedOutQuery.queryKey, signedOut);
}

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noticeEndOfSession }),
  mutationCache: new MutationCache({ onError: noticeEndOfSession }),
  defaultOptions: {
    queries: {
      // What the gateway refuses, it refuses again. Without an answer or with 5xx, it may recover.
      retry: (failures, error) => failures < MOST_RETRIES && !isRefusal(error),
      refetchOnWindowFocus: false,
    },
  },
});

function isRefusal(error: Error): boolean {
  return error instanceof ApiFailure && error.status >= 400 && error.status < 500;
}

/** While one is on a page, its data are at most this old when it is opened again. */
export const FRESH_MS = 5_000;

/** How often a message is asked for while an attempt of it is due. */
export const DUE_MS = 3_000;
