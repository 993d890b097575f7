import { Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useEffect } from 'react';
import { PORTAL_COMPANY_ID } from '../api/addresses.ts';
import { arrival } from '../api/arrival.ts';
import { toFailure } from '../api/failure.ts';
import { offersQuery, signedOutQuery } from '../api/issuer.ts';
import { followLive } from '../api/live.ts';
import { type Session, sessionEndQuery, sessionQuery } from '../api/session.ts';
import { Loading } from '../parts/states.tsx';
import { usePortalTheme } from '../theme/theme.ts';
import { SessionContext } from './session-context.ts';
import { SignIn } from './sign-in.tsx';
import { SignedOutPage } from './signed-out.tsx';
import styles from './session.module.css';

interface EntranceProps {
  pages: ReactNode;
  /** Called when the pages are shown. */
  onShown: () => void;
}

/** Shows the pages to whoever is signed in, and to others how to sign in. */
export function Entrance({ pages, onShown }: EntranceProps) {
  const { data: session, error, isPending, refetch } = useQuery(sessionQuery);
  const { data: end = null } = useQuery(sessionEndQuery);
  const { data: signedOut = null } = useQuery(signedOutQuery);
  // Beside the session: without one, the sign-in page needs it at once.
  useQuery({ ...offersQuery, enabled: PORTAL_COMPANY_ID === null });
  usePortalTheme(session?.portal?.theme ?? null);
  if (isPending) return <Loading what="the gateway" />;
  // An invitation is for whoever signs in with it, which may be somebody else.
  if (session && arrival.invitation === null) {
    // Of another session nothing is kept, also not the stream of live attempts.
    return <Pages key={session.key.id} session={session} pages={pages} onShown={onShown} />;
  }
  if (PORTAL_COMPANY_ID !== null) return <PortalClosed error={error ?? end?.why ?? null} />;
  if (signedOut !== null) return <SignedOutPage signedOut={signedOut} />;
  return <SignIn error={error} end={end} onContinue={() => void refetch()} />;
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

/** What ends a visit, and not what keeps a link from opening. */
const ENDS = ['unauthorized', 'session_replaced'];

/** Why a portal is not shown: its link was used, has expired or is not whole, or the visit has ended. */
function PortalClosed({ error }: { error: Error | null }) {
  useEffect(() => {
    document.title = 'Webhooks';
  }, []);
  const failure = error === null ? null : toFailure(error);
  const isEnd = failure === null || ENDS.includes(failure.code);
  return (
    <main className={styles.entrance}>
      <div className={styles.card} role="alert">
        <Title order={1} size="h2">
          {isEnd ? 'Your visit has ended' : 'This link does not open the portal'}
        </Title>
        <Text>
          {failure !== null && (failure.code === 'session_replaced' || !isEnd)
            ? failure.message
            : 'A visit lasts as long as its link says, or until it is ended.'}
        </Text>
        <Text>
          Each link opens the portal once. Go back to the site that gave you the link and open the
          webhooks there again: it makes a new one.
        </Text>
        {failure !== null && (
          <Text size="sm">
            Code <code>{failure.code}</code>
            {failure.requestId !== null && (
              <>
                , request <code>{failure.requestId}</code>
              </>
            )}
          </Text>
        )}
      </div>
    </main>
  );
}
