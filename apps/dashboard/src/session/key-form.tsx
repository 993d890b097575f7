import { Button, PasswordInput, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode, SyntheticEvent } from 'react';
import { changeSession } from '../api/query-client.ts';
import { signIn } from '../api/session.ts';
import styles from './session.module.css';

interface KeyFormProps {
  /** Returns the content above the fields; `wrong` is the reason why a key was refused. */
  top: (wrong: Error | null) => ReactNode;
}

/** Takes an API key with its company. */
export function KeyForm({ top }: KeyFormProps) {
  const mutation = useMutation({
    mutationFn: signIn,
    onSuccess: (session) => {
      changeSession(session);
    },
  });
  const submit = (event: SyntheticEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const companyId = textOf(fields, 'companyId');
    mutation.mutate({ apiKey: textOf(fields, 'apiKey'), ...(companyId !== '' && { companyId }) });
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      {top(mutation.error)}
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
    </form>
  );
}

function textOf(fields: FormData, name: string): string {
  const value = fields.get(name);
  return typeof value === 'string' ? value.trim() : '';
}
