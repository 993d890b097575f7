import { Button, Text, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { arrival } from '../api/arrival.ts';
import { given } from '../api/client.ts';
import { ApiFailure, refusalOf } from '../api/failure.ts';
import { goToIssuer, hereForIssuer, type Offers } from '../api/issuer.ts';
import { Failed } from '../parts/states.tsx';
import { KeyForm } from './key-form.tsx';
import styles from './session.module.css';

interface IssuerSignInProps {
  issuer: string;
  offers: Offers;
  /** Why a one-time link was refused. */
  refused: Error | null;
  why: ReactNode;
}

const INVITATION = arrival.invitation ?? undefined;

/** Leads to the issuer. A key is behind a button: it is for programs, and for the day the issuer is down. */
export function IssuerSignIn({ issuer, offers, refused, why }: IssuerSignInProps) {
  const begin = useMutation({
    mutationFn: () => goToIssuer({ to: hereForIssuer(), ...given({ invitation: INVITATION }) }),
  });
  return (
    <div className={styles.card}>
      <Title order={1} size="h2">
        {INVITATION === undefined ? 'Sign in to Posthorn' : 'You are invited to Posthorn'}
      </Title>
      <Refused error={begin.error ?? refused} offers={offers} />
      {why}
      {INVITATION !== undefined && (
        <Text>
          Sign in to accept the invitation. It opens once: for the person who signs in with it.
        </Text>
      )}
      <Button
        autoFocus
        loading={begin.isPending}
        onClick={() => {
          begin.mutate();
        }}
      >
        Sign in with {hostOf(issuer)}
      </Button>
      {offers.apiKey && INVITATION === undefined && <KeyInstead />}
    </div>
  );
}

/** Returns the name under which people know an issuer. */
export function hostOf(issuer: string): string {
  return new URL(issuer).host;
}

interface RefusedProps {
  /** Why this page could not go on; null where the gateway has led here with a code. */
  error: Error | null;
  offers: Offers;
}

function Refused({ error, offers: { refused } }: RefusedProps) {
  if (error instanceof ApiFailure && error.code.startsWith('link_') && INVITATION !== undefined) {
    return <Failed error={refusalOf(error.code)} what="sign in" next={ANOTHER_INVITATION} />;
  }
  if (error !== null) return <Failed error={error} what="sign in" />;
  const code = arrival.refusal;
  if (code === null) return null;
  if (code.startsWith('link_')) {
    return <Failed error={refusalOf(code)} what="sign in" next={ANOTHER_INVITATION} />;
  }
  return (
    <>
      <Failed error={refusalOf(code)} what="sign in" />
      {code === 'no_role' && refused?.code === code && <OwnGroups groups={refused.groups ?? []} />}
    </>
  );
}

const ANOTHER_INVITATION = 'Ask the admin who invited you for another one.';

/** For the admin who is asked: groups are compared exactly. */
function OwnGroups({ groups }: { groups: readonly string[] }) {
  if (groups.length === 0) return <Text size="sm">Your issuer named no groups of yours.</Text>;
  return (
    <div>
      <Text size="sm">Your groups, as your issuer names them:</Text>
      <ul className={styles.groups}>
        {groups.map((group) => (
          <li key={group}>
            <code>{group}</code>
          </li>
        ))}
      </ul>
    </div>
  );
}

function KeyInstead() {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button
        variant="subtle"
        aria-expanded={isOpen}
        onClick={() => {
          setOpen(!isOpen);
        }}
      >
        Use an API key
      </Button>
      {isOpen && <KeyForm top={(wrong) => wrong && <Failed error={wrong} what="sign in" />} />}
    </>
  );
}
