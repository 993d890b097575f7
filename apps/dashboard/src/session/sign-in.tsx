import { Anchor, Button, PasswordInput, Text, TextInput, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type SyntheticEvent, useEffect } from 'react';
import { GATEWAY_URL } from '../api/addresses.ts';
import type { ApiFailure } from '../api/failure.ts';
import { changeSession } from '../api/query-client.ts';
import { heldSessionQuery, signIn } from '../api/session.ts';
import { Failed } from '../parts/states.tsx';
import styles from './session.module.css';

interface SignInProps {
  /** Why a one-time link was refused. */
  error: Error | null;
  /** Why the session before has ended. */
  end: ApiFailure | null;
  /** Goes on with the session that the browser has all the same. */
  onContinue: () => void;
}

/** Takes an API key with its company. */
export function SignIn({ error, end, onContinue }: SignInProps) {
  const mutation = useMutation({
    mutationFn: signIn,
    onSuccess: (session) => {
      changeSession(session);
    },
  });
  useEffect(() => {
    document.title = 'Sign in · Posthorn';
  }, []);
  const submit = (event: SyntheticEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const companyId = textOf(fields, 'companyId');
    mutation.mutate({ apiKey: textOf(fields, 'apiKey'), ...(companyId !== '' && { companyId }) });
  };
  const refused = mutation.error ?? error;
  return (
    <main className={styles.entrance}>
      <form className={styles.card} onSubmit={submit}>
        <Title order={1} size="h2">
          Sign in to Posthorn
        </Title>
        {refused !== null && <Failed error={refused} what="sign in" />}
        {error !== null && <StillSignedIn onContinue={onContinue} />}
        {end !== null && <Text role="status">{whyEnded(end)}</Text>}
        <PasswordInput
          name="apiKey"
          label="API key"
          required
          autoFocus
          autoComplete="current-password"
          visibilityToggleFocusable
          visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the API key' }}
        />
        <TextInput
          name="companyId"
          label="Company id"
          description="Not needed: the key knows its company"
          placeholder="comp_…"
        />
        <Button type="submit" loading={mutation.isPending}>
          Sign in
        </Button>
        <Help />
      </form>
    </main>
  );
}

/** The gateway says the same of every session that it does not have any more. */
function whyEnded({ code, message }: ApiFailure): string {
  return code === 'session_replaced'
    ? `${message} Reload the page to go on with that one.`
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

function textOf(fields: FormData, name: string): string {
  const value = fields.get(name);
  return typeof value === 'string' ? value.trim() : '';
}
