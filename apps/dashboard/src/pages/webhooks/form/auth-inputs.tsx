import { PasswordInput, TextInput } from '@mantine/core';
import type { ErrorOf } from '../../../parts/form-fields.ts';
import type { AuthField, BLANK } from './auth-draft.ts';
import { type Asked, isNewMethod, isRequired, mustGiveAgain } from './auth-rules.ts';
import styles from '../webhooks.module.css';

export interface AuthFieldsProps {
  /** What the fields hold at first. */
  shown: typeof BLANK;
  asked: Asked;
  errorOf: ErrorOf;
}

interface AuthInputProps extends AuthFieldsProps {
  name: AuthField;
  label: string;
  type?: 'text' | 'url';
  description?: string;
  placeholder?: string;
  onType?: (value: string) => void;
}

/** A field that is no secret. */
export function AuthInput({ name, shown, asked, errorOf, onType, ...rest }: AuthInputProps) {
  return (
    <TextInput
      {...rest}
      name={name}
      autoComplete="off"
      required={isRequired(name, asked)}
      defaultValue={shown[name]}
      error={errorOf(name)}
      onChange={({ currentTarget }) => onType?.(currentTarget.value)}
    />
  );
}

interface SecretInputProps extends AuthFieldsProps {
  name: AuthField;
  label: string;
  /** What an empty field means while nothing is stored. */
  blank?: string;
}

const GIVE_AGAIN = (
  <span className={styles.again}>
    Must be given again: the stored one would go to another server, and you may not see it
  </span>
);

/** A field that is always empty at first: what is stored is never shown, and stays while nothing is typed. */
export function SecretInput({ name, label, blank, asked, errorOf }: SecretInputProps) {
  const { method, stored } = asked;
  const kept = isNewMethod(method, stored) ? blank : 'Leave empty to keep the stored one';
  return (
    <PasswordInput
      name={name}
      label={label}
      description={mustGiveAgain(asked) ? GIVE_AGAIN : kept}
      autoComplete="new-password"
      required={isRequired(name, asked)}
      error={errorOf(name)}
      visibilityToggleFocusable
      visibilityToggleButtonProps={{ 'aria-label': `Show or hide what is typed as ${label}` }}
    />
  );
}

/** The secret of a webhook that somebody chooses, such as the one that its endpoint has already. */
export function OwnSecretInput({ error }: { error: string | undefined }) {
  return (
    <PasswordInput
      name="secret"
      label="Own secret"
      description="Generated unless given: whsec_ and the base64 of 24 to 64 bytes, such as the one that the endpoint has already"
      autoComplete="new-password"
      error={error}
      visibilityToggleFocusable
      visibilityToggleButtonProps={{ 'aria-label': 'Show or hide what is typed as own secret' }}
    />
  );
}
