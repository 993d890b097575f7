import { useQuery } from '@tanstack/react-query';
import { createContext, use } from 'react';
import { offersQuery } from '../api/issuer.ts';
import type { Session } from '../api/session.ts';
import { type Rights, rightsOf } from './rights.ts';

export const SessionContext = createContext<Session | null>(null);

/** The session of whoever looks. Pages are shown to signed-in people only. */
export function useSession(): Session {
  const session = use(SessionContext);
  if (session === null) throw new Error('This page is shown without a session');
  return session;
}

export function useRights(): Rights {
  return rightsOf(useSession());
}

/** Whether people sign in at an issuer here; false while it is not known. */
export function useHasIssuer(): boolean {
  const { kind } = useSession();
  const { data } = useQuery({ ...offersQuery, enabled: kind === 'company' });
  return (data?.oidc ?? null) !== null;
}
