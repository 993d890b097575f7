import type { components } from '@posthorn/client';

type UpdateBody = components['schemas']['UpdateWebhook'];

/** How a webhook authenticates, as the API shows it. */
export type StoredAuth = components['schemas']['AuthMethod'];
/** A method as requests name it; stored webhooks spell `apiKey` as `api_key`. */
export type AuthName = NonNullable<UpdateBody['authMethod']>;

/** What each field holds while nothing is stored for it. An empty header is not sent, and so is the default. */
export const BLANK = {
  hmacHeader: 'X-Service-Signature',
  hmacSecret: '',
  signatureAlgorithm: 'hmac-sha256',
  basicAuthUsername: '',
  basicAuthPassword: '',
  apiKey: '',
  apiKeyHeader: '',
  oauth2TokenUrl: '',
  oauth2ClientId: '',
  oauth2ClientSecret: '',
  oauth2Scope: '',
  oauth2Audience: '',
  oauth2ClientAuthentication: 'basic',
};

export type AuthField = keyof typeof BLANK;
export type AuthBody = Pick<UpdateBody, AuthField | 'authMethod'>;

/** What somebody has chosen and typed. Fields that the form does not show are missing. */
export interface AuthDraft {
  method: AuthName;
  typed: Partial<Record<AuthField, string>>;
}

interface MethodRules {
  fields: readonly AuthField[];
  /** Those that a webhook which gets the method must be given. */
  required: readonly AuthField[];
  secret: AuthField;
}

/** See docs/contract.md C6.4, C6.15 and C6.16. */
export const METHODS: Readonly<Record<AuthName, MethodRules>> = {
  hmac: {
    fields: ['signatureAlgorithm', 'hmacHeader', 'hmacSecret'],
    required: [],
    secret: 'hmacSecret',
  },
  basic: {
    fields: ['basicAuthUsername', 'basicAuthPassword'],
    required: ['basicAuthUsername', 'basicAuthPassword'],
    secret: 'basicAuthPassword',
  },
  apiKey: {
    fields: ['apiKeyHeader', 'apiKey'],
    required: ['apiKeyHeader', 'apiKey'],
    secret: 'apiKey',
  },
  oauth2: {
    fields: [
      'oauth2TokenUrl',
      'oauth2ClientId',
      'oauth2ClientSecret',
      'oauth2Scope',
      'oauth2Audience',
      'oauth2ClientAuthentication',
    ],
    required: ['oauth2TokenUrl', 'oauth2ClientId', 'oauth2ClientSecret'],
    secret: 'oauth2ClientSecret',
  },
};

/** The method of a webhook; that of a new one is `hmac` until another is chosen. */
export function methodOf(stored: StoredAuth | null): AuthName {
  if (stored === null) return 'hmac';
  return stored.method === 'api_key' ? 'apiKey' : stored.method;
}

/** Returns what the fields of a method hold at first: what is stored for it, and never a secret. */
export function shownFields(method: AuthName, stored: StoredAuth | null): typeof BLANK {
  return stored === null || methodOf(stored) !== method ? BLANK : { ...BLANK, ...shown(stored) };
}

function shown(stored: StoredAuth): Partial<Record<AuthField, string>> {
  switch (stored.method) {
    case 'hmac': {
      const { hmacHeader, signatureAlgorithm = BLANK.signatureAlgorithm } = stored;
      return { hmacHeader, signatureAlgorithm };
    }
    case 'basic':
      return { basicAuthUsername: stored.username };
    case 'api_key':
      return { apiKeyHeader: stored.apiKeyHeader };
    case 'oauth2':
      return {
        oauth2TokenUrl: stored.tokenUrl,
        oauth2ClientId: stored.clientId,
        oauth2Scope: stored.scope ?? '',
        oauth2Audience: stored.audience ?? '',
        oauth2ClientAuthentication: stored.clientAuthentication,
      };
  }
}
