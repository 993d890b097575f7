import { Anchor, Button, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useEffect } from 'react';
import { GATEWAY_URL } from '../api/addresses.ts';
import { offersQuery } from '../api/issuer.ts';
import { heldSessionQuery, type SessionEnd } from '../api/session.ts';
import { Failed, Loading } from '../parts/states.tsx';
import { IssuerSignIn } from './issuer-sign-in.tsx';
import { KeyForm } from './key-form.tsx';
import styles from './session.module.css';

interface SignInProps {
  /** Why a one-time link was refused. */
  error: Error | null;
  /** How the session before has ended. */
  end: SessionEnd | null;
  /** Goes on with the session that the browser has all the same. */
  onContinue: () => void;
}

/** Leads people to the issuer, and takes an API key with its company. */
export function SignIn({ error, end, onContinue }: SignInProps) {
  const { data: offers, isPending } = useQuery(offersQuery);
  useEffect(() => {
    document.title = 'Sign in · Posthorn';
  }, []);
  if (isPending) return <Loading what="the gateway" />;
  const why = (
    <>
      {error !== null && <StillSignedIn onContinue={onContinue} />}
      {end !== null && <Text role="status">{whyEnded(end)}</Text>}
    </>
  );
  // Without an answer, the form of keys is there: it shows why the gateway does not respond.
  const oidc = offers?.oidc ?? null;
  return (
    <main className={styles.entrance}>
      {offers === undefined || oidc === null ? (
        <KeySignIn refused={error} why={why} />
      ) : (
        <IssuerSignIn issuer={oidc.issuer} offers={offers} refused={error} why={why} />
      )}
    </main>
  );
}

interface KeySignInProps {
  refused: Error | null;
  why: ReactNode;
}

function KeySignIn({ refused, why }: KeySignInProps) {
  return (
    <div className={styles.card}>
      <Title order={1} size="h2">
        Sign in to Posthorn
      </Title>
      <KeyForm
        top={(wrong) => {
          const shown = wrong ?? refused;
          return (
            <>
              {shown !== null && <Failed error={shown} what="sign in" />}
              {why}
            </>
          );
        }}
      />
      <Help />
    </div>
  );
}

/** The gateway says the same of every session that it does not have any more. */
function whyEnded({ why: { code, message }, wasOfPerson }: SessionEnd): string {
  if (code === 'session_replaced') return `${message} Reload the page to go on with that one.`;
  return wasOfPerson
    ? 'Your session has ended: its time is over, your role has changed, you signed out elsewhere, or an admin ended it. Sign in again.'
    : 'Your session has ended: its API key was revoked or has expired, its 12 hours are over, or you signed out in another tab. Sign in again.';
}

/** A link that does not open ends no session: whoever is signed in need not sign in again. */
function StillSignedIn({ onContinue }: Pick<SignInProps, 'onContinue'>) {
  const { data: held = null } = useQuery(heldSessionQuery);
  if (held === null) return null;
  return (
    <>
      <Text>This browser is still signed in. Go on with that session, or sign in with a key.</Text>
      <Button variant="default" onClick={onContinue}>
        Go on as {held.company.name}
      </Button>
    </>
  );
}

function Help() {
  return (
    <>
      <Text size="sm">
        The session can do what the key can do, for 12 hours. Revoking the key ends it within
        seconds.
      </Text>
      <Text size="sm">
        No key at hand? An operator makes a one-time sign-in link with{' '}
        <code>npm run admin -- dashboard-link COMPANY</code>; <code>npm start</code> prints one.{' '}
        <Anchor href={`${GATEWAY_URL}/docs`} inherit underline="always">
          Documentation of the API
        </Anchor>
      </Text>
    </>
  );
}
