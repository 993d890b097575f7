import { isSignedByCompany, type AuthMethod, type Webhook } from '../webhook.ts';
import type { AuditedFields } from './changes.ts';

/**
 * Fields that are not audited: those that no request changes, and `authMethod`, which `fieldsOfAuth` spells out.
 * The list names what is left out, so that a field which is added later is audited.
 */
const LEFT_OUT: ReadonlySet<string> = new Set<keyof Webhook>([
  'id',
  'companyId',
  'createdAtMs',
  'updatedAtMs',
  'previousSecret',
  'authMethod',
]);

/**
 * Returns the fields of a webhook by the names that requests give them, secrets included: only for
 * `changesBetween`.
 */
export function fieldsOfWebhook(webhook: Webhook): AuditedFields {
  const fields = Object.entries(webhook).filter(([name]) => !LEFT_OUT.has(name));
  return { ...Object.fromEntries(fields), ...fieldsOfAuth(webhook.authMethod) };
}

function fieldsOfAuth(auth: AuthMethod): AuditedFields {
  switch (auth.method) {
    case 'hmac':
      return {
        authMethod: 'hmac',
        hmacHeader: auth.hmacHeader,
        hmacSecret: auth.hmacSecret,
        signatureAlgorithm: isSignedByCompany(auth) ? 'ed25519' : 'hmac-sha256',
      };
    case 'basic':
      return {
        authMethod: 'basic',
        basicAuthUsername: auth.username,
        basicAuthPassword: auth.password,
      };
    case 'api_key':
      return { authMethod: 'apiKey', apiKeyHeader: auth.apiKeyHeader, apiKey: auth.apiKey };
    case 'oauth2':
      return {
        authMethod: 'oauth2',
        oauth2TokenUrl: auth.tokenUrl,
        oauth2ClientId: auth.clientId,
        oauth2ClientSecret: auth.clientSecret,
        oauth2Scope: auth.scope,
        oauth2Audience: auth.audience,
        oauth2ClientAuthentication: auth.clientAuthentication,
      };
  }
}
