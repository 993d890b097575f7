import { NativeSelect, PasswordInput, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { type ErrorOf, valueTo } from '../../parts/form-fields.ts';
import { useRights } from '../../session/session-context.ts';
import {
  type Asked,
  type AuthField,
  type AuthName,
  BLANK,
  isMethod,
  isNewMethod,
  isRequired,
  methodOf,
  mustGiveAgain,
  shownFields,
  type StoredAuth,
} from './auth-rules.ts';
import styles from './webhooks.module.css';

const NAMES: readonly { value: AuthName; label: string }[] = [
  { value: 'hmac', label: 'Signature (hmac)' },
  { value: 'basic', label: 'User name and password (basic)' },
  { value: 'apiKey', label: 'API key in a header (apiKey)' },
  { value: 'oauth2', label: 'Access token of OAuth 2.0 (oauth2)' },
];

interface AuthenticationProps {
  /** Null for a new webhook. */
  stored: StoredAuth | null;
  /** Whether the URL that was typed names another server than the stored one. */
  isMoved: boolean;
  errorOf: ErrorOf;
}

/** How deliveries prove who sent them. */
export function Authentication({ stored, isMoved, errorOf }: AuthenticationProps) {
  const { canSeeSecrets } = useRights();
  const before = methodOf(stored);
  const [method, setMethod] = useState(before);
  const Fields = FIELDS_OF[method];
  const asked = { method, stored, seesSecrets: canSeeSecrets, isMoved };
  return (
    <fieldset className={styles.group}>
      <legend>Authentication</legend>
      <NativeSelect
        name="authMethod"
        label="Method"
        description="What proves to the endpoint where a delivery comes from"
        data={NAMES}
        value={method}
        error={errorOf('authMethod')}
        onChange={valueTo((chosen) => {
          if (isMethod(chosen)) setMethod(chosen);
        })}
      />
      <Fields key={method} shown={shownFields(method, stored)} asked={asked} errorOf={errorOf} />
    </fieldset>
  );
}

const FIELDS_OF = {
  hmac: SignatureFields,
  basic: BasicFields,
  apiKey: ApiKeyFields,
  oauth2: OAuth2Fields,
};

const ALGORITHMS = [
  { value: 'hmac-sha256', label: 'HMAC-SHA256, with a shared secret' },
  { value: 'ed25519', label: 'Ed25519, with a public key' },
];

function SignatureFields(all: AuthFieldsProps) {
  const [algorithm, setAlgorithm] = useState(all.shown.signatureAlgorithm);
  return (
    <>
      <NativeSelect
        name="signatureAlgorithm"
        label="Algorithm"
        data={ALGORITHMS}
        value={algorithm}
        error={all.errorOf('signatureAlgorithm')}
        onChange={valueTo(setAlgorithm)}
      />
      {algorithm === 'ed25519' ? (
        <Text size="sm">
          The signing key of the company signs, and the endpoint verifies with its public key. The
          signature is in <code>webhook-signature</code>.
        </Text>
      ) : (
        <>
          <AuthInput
            {...all}
            name="hmacHeader"
            label="Header of the signature"
            description={`Empty for ${BLANK.hmacHeader}`}
          />
          <SecretInput
            {...all}
            name="hmacSecret"
            label="Signing secret"
            blank="Leave empty to sign with the secret that the webhook gets"
          />
        </>
      )}
    </>
  );
}

function BasicFields(all: AuthFieldsProps) {
  return (
    <>
      <AuthInput
        {...all}
        name="basicAuthUsername"
        label="User name"
        description="Without a colon"
      />
      <SecretInput {...all} name="basicAuthPassword" label="Password" />
    </>
  );
}

function ApiKeyFields(all: AuthFieldsProps) {
  return (
    <>
      <AuthInput
        {...all}
        name="apiKeyHeader"
        label="Header of the API key"
        placeholder="X-Api-Key"
      />
      <SecretInput {...all} name="apiKey" label="API key" />
    </>
  );
}

interface AuthFieldsProps {
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
function AuthInput({ name, shown, asked, errorOf, onType, ...rest }: AuthInputProps) {
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
function SecretInput({ name, label, blank, asked, errorOf }: SecretInputProps) {
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

const CLIENT_AUTHENTICATIONS = [
  { value: 'basic', label: 'In the header Authorization (basic)' },
  { value: 'post', label: 'In the body (post)' },
];

/** The client credentials grant of OAuth 2.0: an access token goes with each delivery. */
function OAuth2Fields({ shown, asked, errorOf }: AuthFieldsProps) {
  const [tokenUrl, setTokenUrl] = useState(shown.oauth2TokenUrl);
  const all = { shown, errorOf, asked: { ...asked, tokenUrl } };
  return (
    <>
      <AuthInput
        {...all}
        name="oauth2TokenUrl"
        type="url"
        label="Token URL"
        description="Where access tokens are requested, with the client credentials grant"
        placeholder="https://login.example.com/oauth2/token"
        onType={setTokenUrl}
      />
      <AuthInput {...all} name="oauth2ClientId" label="Client id" />
      <SecretInput {...all} name="oauth2ClientSecret" label="Client secret" />
      <AuthInput
        {...all}
        name="oauth2Scope"
        label="Scope"
        description="Names with one space between them; empty for none"
      />
      <AuthInput
        {...all}
        name="oauth2Audience"
        label="Audience"
        description="For token servers that ask for one; empty for none"
      />
      <NativeSelect
        name="oauth2ClientAuthentication"
        label="How id and secret go to the token server"
        data={CLIENT_AUTHENTICATIONS}
        defaultValue={shown.oauth2ClientAuthentication}
        error={errorOf('oauth2ClientAuthentication')}
      />
    </>
  );
}
