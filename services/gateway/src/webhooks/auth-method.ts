import { ImpossibleError } from '@posthorn/domain/required.ts';
import {
  CLIENT_AUTHENTICATIONS,
  DEFAULT_HMAC_HEADER,
  isSignedByCompany,
  type AuthMethod,
  type ClientAuthentication,
  type OAuth2Client,
  type SignatureAlgorithm,
} from '@posthorn/domain/webhook.ts';

/** The methods of authentication as requests name them; stored webhooks spell `apiKey` as `api_key`. */
export type AuthName = 'hmac' | 'basic' | 'apiKey' | 'oauth2';

/** The fields of a request that choose a method of authentication and its credentials. */
export interface AuthFields {
  authMethod?: AuthName | undefined;
  basicAuthUsername?: string | undefined;
  basicAuthPassword?: string | undefined;
  apiKey?: string | undefined;
  apiKeyHeader?: string | undefined;
  hmacHeader?: string | undefined;
  hmacSecret?: string | undefined;
  signatureAlgorithm?: SignatureAlgorithm | undefined;
  oauth2TokenUrl?: string | undefined;
  oauth2ClientId?: string | undefined;
  oauth2ClientSecret?: string | undefined;
  oauth2Scope?: string | null | undefined;
  oauth2Audience?: string | null | undefined;
  oauth2ClientAuthentication?: ClientAuthentication | undefined;
}

/** The method that a request chooses: the one it names, else that of the webhook, else `hmac`. */
export function chosenAuth(
  { authMethod }: Pick<AuthFields, 'authMethod'>,
  before: AuthMethod | undefined,
): AuthName {
  return authMethod ?? nameOf(before) ?? 'hmac';
}

export function nameOf(auth: AuthMethod | undefined): AuthName | undefined {
  return auth?.method === 'api_key' ? 'apiKey' : auth?.method;
}

/** The algorithm that a request chooses for `hmac`: the one it names, else that of the webhook, else HMAC. */
export function chosenAlgorithm(
  { signatureAlgorithm }: Pick<AuthFields, 'signatureAlgorithm'>,
  before: AuthMethod | undefined,
): SignatureAlgorithm {
  return signatureAlgorithm ?? (before && isSignedByCompany(before) ? 'ed25519' : 'hmac-sha256');
}

/** The header that the chosen method sets; undefined while its name is missing. */
export function authHeaderOf(
  fields: AuthFields,
  before: AuthMethod | undefined,
): string | undefined {
  switch (chosenAuth(fields, before)) {
    case 'basic':
    case 'oauth2':
      return 'Authorization';
    case 'apiKey':
      return (
        fields.apiKeyHeader ?? (before?.method === 'api_key' ? before.apiKeyHeader : undefined)
      );
    case 'hmac':
      return (
        fields.hmacHeader ?? (before?.method === 'hmac' ? before.hmacHeader : DEFAULT_HMAC_HEADER)
      );
  }
}

/**
 * Returns the method that a webhook gets. What the fields leave out stays as `before` has it, if the
 * method stays the same. `hmac` signs with `secret` unless the client gave an `hmacSecret`; both are
 * kept while Ed25519 signs. Throws when a credential is missing: the request must have been checked.
 */
export function authMethodOf(
  fields: AuthFields,
  before: AuthMethod | undefined,
  secret: string,
): AuthMethod {
  switch (chosenAuth(fields, before)) {
    case 'basic': {
      const old = before?.method === 'basic' ? before : undefined;
      return {
        method: 'basic',
        username: fieldOf('basicAuthUsername', fields.basicAuthUsername ?? old?.username),
        password: fieldOf('basicAuthPassword', fields.basicAuthPassword ?? old?.password),
      };
    }
    case 'apiKey': {
      const old = before?.method === 'api_key' ? before : undefined;
      return {
        method: 'api_key',
        apiKey: fieldOf('apiKey', fields.apiKey ?? old?.apiKey),
        apiKeyHeader: fieldOf('apiKeyHeader', fields.apiKeyHeader ?? old?.apiKeyHeader),
      };
    }
    case 'oauth2':
      return oauth2Of(fields, before?.method === 'oauth2' ? before : undefined);
    case 'hmac': {
      const old = before?.method === 'hmac' ? before : undefined;
      return {
        method: 'hmac',
        hmacHeader: fields.hmacHeader ?? old?.hmacHeader ?? DEFAULT_HMAC_HEADER,
        hmacSecret: fields.hmacSecret ?? old?.hmacSecret ?? secret,
        ...(chosenAlgorithm(fields, before) === 'ed25519' && {
          signatureAlgorithm: 'ed25519' as const,
        }),
      };
    }
  }
}

/** Null takes scope or audience away; left out, they stay. */
function oauth2Of(fields: AuthFields, old: OAuth2Client | undefined): OAuth2Client {
  const { oauth2Scope: scope = old?.scope, oauth2Audience: audience = old?.audience } = fields;
  return {
    method: 'oauth2',
    tokenUrl: fieldOf('oauth2TokenUrl', fields.oauth2TokenUrl ?? old?.tokenUrl),
    clientId: fieldOf('oauth2ClientId', fields.oauth2ClientId ?? old?.clientId),
    clientSecret: fieldOf('oauth2ClientSecret', fields.oauth2ClientSecret ?? old?.clientSecret),
    scope: scope ?? null,
    audience: audience ?? null,
    clientAuthentication:
      fields.oauth2ClientAuthentication ?? old?.clientAuthentication ?? CLIENT_AUTHENTICATIONS[0],
  };
}

function fieldOf(name: keyof AuthFields, value: string | undefined): string {
  if (value === undefined) throw new ImpossibleError(`${name} is missing in a checked request`);
  return value;
}
