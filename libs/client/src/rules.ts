// Written by `node libs/client/write-rules.ts` from the tables of the domain and the API document.
import type { FieldRule } from './rule-types.ts';

export type { Bounds, FieldRule } from './rule-types.ts';

/** Rules of fields by their names in requests. Those of one installation, such as its quotas, are not among them. */
type Rules = Readonly<Record<string, FieldRule>>;

/** The fields of a project. */
export const PROJECT_RULES = {
  name: { type: 'text', minChars: 1, maxChars: 100, isRequired: true },
  uid: { type: 'text', minChars: 1, maxChars: 128, pattern: '^[A-Za-z0-9._-]{1,128}$', default: null },
  environment: { type: 'text', choices: ['development', 'production'], isFixed: true, default: 'development' },
  metadata: { type: 'pairs', maxEntries: 20, parts: { key: { type: 'text', minChars: 1, maxChars: 40 }, value: { type: 'text', maxChars: 500 } }, maxBytes: 16384, default: {} },
  description: { type: 'text', maxChars: 1000, default: null },
  eventTypePolicy: { type: 'text', choices: ['open', 'known', 'validated'], default: 'open' },
} as const satisfies Rules;

/** The fields of an app. */
export const APP_RULES = {
  name: { type: 'text', minChars: 1, maxChars: 100, isRequired: true },
  projectId: { type: 'text', minChars: 1, maxChars: 132, isRequired: true, owner: 'Project', isFixed: true },
  uid: { type: 'text', minChars: 1, maxChars: 128, pattern: '^[A-Za-z0-9._-]{1,128}$', default: null },
  environment: { type: 'text', choices: ['development', 'production'], isFixed: true, default: 'development' },
  metadata: { type: 'pairs', maxEntries: 20, parts: { key: { type: 'text', minChars: 1, maxChars: 40 }, value: { type: 'text', maxChars: 500 } }, maxBytes: 16384, default: {} },
  description: { type: 'text', maxChars: 1000, default: '' },
  storeResponses: { type: 'flag', default: true },
  storePayloads: { type: 'text', choices: ['retained', 'until-delivered'], default: 'retained' },
} as const satisfies Rules;

/** The fields of an event type. */
export const EVENT_TYPE_RULES = {
  name: { type: 'text', minChars: 1, maxChars: 128, pattern: '^[A-Za-z0-9._:/-]{1,128}$', refused: ['.', '..'], isRequired: true, isFixed: true },
  description: { type: 'text', maxChars: 4096, default: '' },
  group: { type: 'text', minChars: 1, maxChars: 100, default: null },
  schema: { type: 'json', maxBytes: 32768, default: null },
  example: { type: 'json', maxBytes: 32768, default: null },
  deprecated: { type: 'flag', default: false },
  archived: { type: 'flag', default: false },
} as const satisfies Rules;

/** The fields of a webhook. */
export const WEBHOOK_RULES = {
  url: { type: 'url', maxChars: 2048, isRequired: true },
  projectId: { type: 'text', minChars: 1, maxChars: 132, owner: 'Project', isFixed: true },
  appId: { type: 'text', minChars: 1, maxChars: 132, owner: 'App', isFixed: true, default: null },
  environmentId: { type: 'text', minChars: 1, maxChars: 64, pattern: '^[A-Za-z0-9_-]{1,64}$', isFixed: true, default: null },
  name: { type: 'text', minChars: 2, maxChars: 100, isKept: true },
  secret: { type: 'secret', pattern: '^whsec_(?:(?:[A-Za-z0-9+/]{4}){8,20}(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?|(?:[A-Za-z0-9+/]{4}){21}(?:[A-Za-z0-9+/][AQgw]==)?)$', isFixed: true },
  signatureHeaders: { type: 'texts', minEntries: 1, entry: { type: 'text', choices: ['webhook', 'svix'] }, default: ['webhook'] },
  customHeaders: { type: 'headers', maxEntries: 20, parts: { key: { type: 'text', pattern: '^[!#$%&\'*+.^_`|~0-9A-Za-z-]{1,128}$' }, value: { type: 'text', maxChars: 4096, pattern: '^([\\x21-\\x7e\\xa0-\\xff]([\\x20-\\x7e\\xa0-\\xff]*[\\x21-\\x7e\\xa0-\\xff])?)?$' } }, maxBytes: 8192, default: [] },
  authMethod: { type: 'text', choices: ['hmac', 'basic', 'apiKey', 'oauth2'], default: 'hmac' },
  hmacHeader: { type: 'text', pattern: '^[!#$%&\'*+.^_`|~0-9A-Za-z-]{1,128}$', default: 'X-Service-Signature', authMethod: 'hmac', shownAs: 'hmacHeader' },
  hmacSecret: { type: 'secret', minChars: 1, maxChars: 1024, authMethod: 'hmac', shownAs: 'hmacSecret' },
  signatureAlgorithm: { type: 'text', choices: ['hmac-sha256', 'ed25519'], default: 'hmac-sha256', authMethod: 'hmac', shownAs: 'signatureAlgorithm' },
  basicAuthUsername: { type: 'text', minChars: 1, maxChars: 1024, pattern: '^[^:\\x00-\\x1f\\x7f]*$', isRequired: true, authMethod: 'basic', shownAs: 'username' },
  basicAuthPassword: { type: 'secret', minChars: 1, maxChars: 1024, pattern: '^[^\\x00-\\x1f\\x7f]*$', isRequired: true, authMethod: 'basic', shownAs: 'password' },
  apiKey: { type: 'secret', minChars: 1, maxChars: 1024, pattern: '^([\\x21-\\x7e\\xa0-\\xff]([\\x20-\\x7e\\xa0-\\xff]*[\\x21-\\x7e\\xa0-\\xff])?)?$', isRequired: true, authMethod: 'apiKey', shownAs: 'apiKey' },
  apiKeyHeader: { type: 'text', pattern: '^[!#$%&\'*+.^_`|~0-9A-Za-z-]{1,128}$', isRequired: true, authMethod: 'apiKey', shownAs: 'apiKeyHeader' },
  oauth2TokenUrl: { type: 'url', maxChars: 2048, isRequired: true, authMethod: 'oauth2', shownAs: 'tokenUrl' },
  oauth2ClientId: { type: 'text', minChars: 1, maxChars: 1024, pattern: '^[^\\x00-\\x1f\\x7f]*$', isRequired: true, authMethod: 'oauth2', shownAs: 'clientId' },
  oauth2ClientSecret: { type: 'secret', minChars: 1, maxChars: 1024, pattern: '^[^\\x00-\\x1f\\x7f]*$', isRequired: true, authMethod: 'oauth2', shownAs: 'clientSecret' },
  oauth2Scope: { type: 'text', minChars: 1, maxChars: 1024, pattern: '^[!#-\\[\\]-~]+( [!#-\\[\\]-~]+)*$', default: null, authMethod: 'oauth2', shownAs: 'scope' },
  oauth2Audience: { type: 'text', minChars: 1, maxChars: 1024, pattern: '^[^\\x00-\\x1f\\x7f]*$', default: null, authMethod: 'oauth2', shownAs: 'audience' },
  oauth2ClientAuthentication: { type: 'text', choices: ['basic', 'post'], default: 'basic', authMethod: 'oauth2', shownAs: 'clientAuthentication' },
  tls: { type: 'object', parts: { certificate: { type: 'text', minChars: 1, maxChars: 8192 }, key: { type: 'text', minChars: 1, maxChars: 8192 }, ca: { type: 'text', minChars: 1, maxChars: 8192 } }, default: null },
  eventTypes: { type: 'texts', maxEntries: 100, entry: { type: 'text', minChars: 1, maxChars: 128, pattern: '^(?:[A-Za-z0-9._:/-]{1,128}|[A-Za-z0-9._:/-]{0,126}[.:/]\\*)$' }, default: [] },
  filter: { type: 'json', maxBytes: 4096, default: null },
  disabled: { type: 'flag', default: false },
  rateLimitPerSecond: { type: 'number', min: 1, max: 10000, default: null },
  timeoutSeconds: { type: 'number', min: 1, max: 15, default: null },
  maxAttempts: { type: 'number', min: 1, max: 7, default: null },
  finalStatusCodes: { type: 'numbers', minEntries: 1, maxEntries: 20, entry: { type: 'number', min: 400, max: 599, refused: [408, 425, 429, 503] }, default: null },
  onGone: { type: 'text', choices: ['retry', 'disable'], default: 'retry' },
  obeyControlHeaders: { type: 'flag', default: false },
  ordering: { type: 'text', choices: ['none', 'block', 'skip'], default: 'none' },
  uid: { type: 'text', minChars: 1, maxChars: 128, pattern: '^[A-Za-z0-9._-]{1,128}$', default: null },
  metadata: { type: 'pairs', maxEntries: 20, parts: { key: { type: 'text', minChars: 1, maxChars: 40 }, value: { type: 'text', maxChars: 500 } }, maxBytes: 16384, default: {} },
} as const satisfies Rules;

/** The fields of a message beside its payload. */
export const MESSAGE_RULES = {
  appId: { type: 'text', minChars: 1, maxChars: 132 },
  webhookId: { type: 'text', minChars: 1, maxChars: 132 },
  eventType: { type: 'text', minChars: 1, maxChars: 128, pattern: '^[A-Za-z0-9._:/-]{1,128}$' },
  tags: { type: 'texts', maxEntries: 5, entry: { type: 'text', minChars: 1, maxChars: 128 } },
  externalId: { type: 'text', minChars: 1, maxChars: 256 },
  orderingKey: { type: 'text', minChars: 1, maxChars: 256, pattern: '^[^\\x00-\\x1f\\x7f]*$' },
  deliverAt: { type: 'time' },
  expiresAt: { type: 'time' },
  retentionDays: { type: 'number', min: 1, max: 3650 },
} as const satisfies Rules;

/** The fields of a filter of deliveries. */
export const FILTER_RULES = {
  status: { type: 'text', minChars: 1, maxChars: 50, pattern: '^(pending|delivered|exhausted|cancelled)(,(pending|delivered|exhausted|cancelled))*$' },
  waiting: { type: 'text', choices: ['hold', 'order', 'time'] },
  reason: { type: 'text', choices: ['webhook_deleted', 'webhook_disabled', 'message_missing', 'cancelled_by_client', 'payload_erased', 'expired_while_waiting', 'expired', 'gone', 'not_retryable', 'aborted', 'all_attempts'] },
  webhookId: { type: 'text', minChars: 1, maxChars: 132 },
  appId: { type: 'text', minChars: 1, maxChars: 132 },
  eventType: { type: 'text', minChars: 1, maxChars: 128, pattern: '^[A-Za-z0-9._:/-]{1,128}$' },
  since: { type: 'time' },
  until: { type: 'time' },
} as const satisfies Rules;

/** The fields of a hold, and of its end. */
export const HOLD_RULES = {
  until: { type: 'time' },
  reason: { type: 'text', minChars: 1, maxChars: 500 },
  ratePerSecond: { type: 'number', min: 1, max: 10000 },
} as const satisfies Rules;

/** The fields of an API key. */
export const API_KEY_RULES = {
  name: { type: 'text', minChars: 1, maxChars: 100, isRequired: true },
  scopes: { type: 'texts', minEntries: 1, maxEntries: 5, entry: { type: 'text', choices: ['messages:write', 'read', 'webhooks:write', 'keys:write', 'admin'] } },
  appId: { type: 'text', minChars: 1, maxChars: 132 },
  expiresAt: { type: 'time' },
} as const satisfies Rules;

/** The fields of a portal link. */
export const PORTAL_LINK_RULES = {
  expiresInSeconds: { type: 'number', min: 60, max: 604800, isRequired: true },
  capabilities: { type: 'texts', maxEntries: 5, entry: { type: 'text', choices: ['view', 'manage', 'secrets', 'resend', 'controlDeliveries'] }, isRequired: true },
  theme: { type: 'object', parts: { name: { type: 'text', minChars: 1, maxChars: 100 }, logoUrl: { type: 'text', minChars: 1, maxChars: 65536, pattern: '^(data:image\\/(png|jpeg|webp|svg\\+xml);base64,[A-Za-z0-9+/]+={0,2}|https:\\/\\/([a-z0-9-]{1,63}\\.){0,6}[a-z][a-z0-9-]{0,62}(:([1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5]))?(\\/[\\w.~%-]+)*(\\?[\\w.~%=&-]*)?)$' }, primaryColor: { type: 'text', pattern: '^#[0-9a-fA-F]{6}$' }, colorScheme: { type: 'text', choices: ['light', 'dark', 'auto'] } } },
  path: { type: 'text', maxChars: 500, pattern: '^(\\/[\\w-]+)+(\\?[\\w=&%.:-]*)?$' },
} as const satisfies Rules;

/** What responses have in place of a value that the caller may not see. */
export const MASK = '********';

/** The fields of `hmac` that have no meaning while Ed25519 signs (docs/contract.md C6.15). */
export const UNUSED_WITH_ED25519 = ['hmacHeader', 'hmacSecret'] as const;

/** Names of headers that a client may not set, in lower case, and how further ones begin (docs/contract.md C6.7). */
export const REFUSED_HEADERS = { names: ['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'host', 'cookie', 'expect', 'via', 'x-real-ip', 'forwarded', 'http2-settings', 'metadata', 'metadata-flavor', 'x-google-metadata-request', 'user-agent', 'traceparent', 'tracestate'], prefixes: ['proxy-', 'x-forwarded-', 'content-', 'webhook-', 'svix-', 'x-aws-ec2-metadata-token'] } as const;
