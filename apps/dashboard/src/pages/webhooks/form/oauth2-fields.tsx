import { NativeSelect } from '@mantine/core';
import { useState } from 'react';
import { type AuthFieldsProps, AuthInput, SecretInput } from './auth-inputs.tsx';

const CLIENT_AUTHENTICATIONS = [
  { value: 'basic', label: 'In the header Authorization (basic)' },
  { value: 'post', label: 'In the body (post)' },
];

/** The client credentials grant of OAuth 2.0: an access token goes with each delivery. */
export function OAuth2Fields({ shown, asked, errorOf }: AuthFieldsProps) {
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
