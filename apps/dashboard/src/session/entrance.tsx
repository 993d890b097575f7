import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useEffect } from 'react';
import { PORTAL_COMPANY_ID } from '../api/addresses.ts';
import { followLive } from '../api/live.ts';
import { type Session, sessionEndQuery, sessionQuery } from '../api/session.ts';
import { Loading } from '../parts/states.tsx';
import { usePortalTheme } from '../theme/use-portal-theme.ts';
import { PortalClosed } from './portal-closed.tsx';
import { SessionContext } from './session-context.ts';
import { SignIn } from './sign-in.tsx';

interface EntranceProps {
  pages: ReactNode;
  /** Called when the pages are shown. */
  onShown: () => void;
}

/** Shows the pages to whoever is signed in, and to others how to sign in. */
export function Entrance({ pages, onShown }: EntranceProps) {
  const { data: session, error, isPending, refetch } = useQuery(sessionQuery);
  const { data: end = null } = useQuery(sessionEndQuery);
  usePortalTheme(session?.portal?.theme ?? null);
  if (isPending) return <Loading what="the gateway" />;
  if (session) return <Pages session={session} pages={pages} onShown={onShown} />;
  return PORTAL_COMPANY_ID === null ? (
    <SignIn error={error} end={end} onContinue={() => void refetch()} />
  ) : (
    <PortalClosed error={error ?? end} />
  );
}

function Pages({ session, pages, onShown }: EntranceProps & { session: Session }) {
  useEffect(onShown, [onShown]);
  useEffect(() => {
    const controller = new AbortController();
    void followLive(controller.signal);
    return () => {
      controller.abort();
    };
  }, []);
  return <SessionContext value={session}>{pages}</SessionContext>;
}
