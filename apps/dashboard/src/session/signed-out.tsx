import { Anchor, Button, Text, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { goToIssuer, hereForIssuer, offersQuery, type SignedOut } from '../api/issuer.ts';
import { Failed } from '../parts/states.tsx';
import { hostOf } from './issuer-sign-in.tsx';
import styles from './session.module.css';

/**
 * The session here has ended, and the one at the issuer may go on: then signing in asks nobody who they are. So this page does not
 * sign in by itself, and has the issuer ask.
 */
export function SignedOutPage({ signedOut: { endSessionUrl } }: { signedOut: SignedOut }) {
  const { data: offers } = useQuery(offersQuery);
  const begin = useMutation({
    mutationFn: () => goToIssuer({ to: hereForIssuer(), again: true }),
  });
  useEffect(() => {
    document.title = 'Signed out · Posthorn';
  }, []);
  const issuer = offers?.oidc?.issuer;
  const name = issuer === undefined ? 'the issuer' : hostOf(issuer);
  return (
    <main className={styles.entrance}>
      <div className={styles.card}>
        <Title order={1} size="h2">
          You are signed out
        </Title>
        {begin.error !== null && <Failed error={begin.error} what="sign in" />}
        <Text>Your session in Posthorn has ended. You may still be signed in at {name}.</Text>
        <Button
          loading={begin.isPending}
          onClick={() => {
            begin.mutate();
          }}
        >
          Sign in again
        </Button>
        {endSessionUrl !== null && (
          <Anchor href={endSessionUrl} underline="always">
            Sign out of {name} too
          </Anchor>
        )}
      </div>
    </main>
  );
}
