import { createContext, use } from 'react';
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
