import { NativeSelect, Text } from '@mantine/core';
import { useState } from 'react';
import { type ErrorOf, valueTo } from '../../../parts/form-fields.ts';
import { useRights } from '../../../session/session-context.ts';
import { type AuthName, BLANK, methodOf, shownFields, type StoredAuth } from './auth-draft.ts';
import { type AuthFieldsProps, AuthInput, SecretInput } from './auth-inputs.tsx';
import { isMethod } from './auth-rules.ts';
import { OAuth2Fields } from './oauth2-fields.tsx';
import styles from '../webhooks.module.css';

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
