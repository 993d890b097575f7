/** A value as the audit log shows it. */
export type AuditValue = string | number | boolean | null | string[];

/** One field that an action changed. Null stands for a field without a value. */
export interface AuditChange {
  field: string;
  before: AuditValue;
  after: AuditValue;
}

/** Fields of a resource or of a request, with their real values. */
export type AuditedFields = Readonly<Record<string, unknown>>;

/** Stands for a value that the log must not hold. */
const HIDDEN = '********';

/**
 * Fields whose values the log may hold. The value of any other one is hidden, so that a field which is added
 * later cannot bring a secret into the log.
 */
// prettier-ignore
const SHOWN_FIELDS: ReadonlySet<string> = new Set([
  'name', 'description', 'environment', 'projectId', 'appId', 'environmentId', 'webhookId',
  'eventTypes', 'disabled', 'rateLimitPerSecond', 'storeResponses', 'storePayloads', 'withSecrets',
  'authMethod', 'hmacHeader', 'signatureAlgorithm', 'apiKeyHeader',
  'oauth2ClientId', 'oauth2Scope', 'oauth2Audience', 'oauth2ClientAuthentication',
  'scopes', 'capabilities', 'origins', 'expiresInSeconds', 'expiresAt', 'graceSeconds', 'keyId', 'newKeyId',
  'since', 'until', 'resendId',
  'filter', 'matched', 'republished', 'resent', 'skipped', 'resealed', 'remaining',
]);

/** Fields with URLs: the values of their query parameters are hidden. */
const URL_FIELDS: ReadonlySet<string> = new Set(['url', 'oauth2TokenUrl']);

interface Field {
  /** Only compared, never shown. */
  real: string;
  shown: AuditValue;
}

/** Returns the fields that differ, without the values that must stay secret. */
export function changesBetween(before: AuditedFields, after: AuditedFields): AuditChange[] {
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  const names = new Set([...old.keys(), ...now.keys()]);
  return [...names]
    .filter((name) => old.get(name)?.real !== now.get(name)?.real)
    .map((field) => ({
      field,
      before: old.get(field)?.shown ?? null,
      after: now.get(field)?.shown ?? null,
    }));
}

/** Null and undefined are no value: a field that is left out does not differ from one that is null. */
function fieldsOf(values: AuditedFields): Map<string, Field> {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  return new Map(
    given.flatMap(([name, value]): [string, Field][] => {
      if (name === 'customHeaders') return headerFields(value);
      return [[name, { real: textOf(value), shown: shownValue(name, value) }]];
    }),
  );
}

/** Any header may carry a credential, so of every value the log only shows that it changed. */
function headerFields(headers: unknown): [string, Field][] {
  return (headers as readonly { key: string; value: string }[]).map(({ key, value }) => [
    `customHeaders.${key}`,
    { real: value, shown: HIDDEN },
  ]);
}

function shownValue(name: string, value: unknown): AuditValue {
  if (URL_FIELDS.has(name) && typeof value === 'string') return withoutQueryValues(value);
  if (!SHOWN_FIELDS.has(name)) return HIDDEN;
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(String);
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  return textOf(value);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Keys and tokens stand in the query of many URLs. Names of parameters stay. */
function withoutQueryValues(url: string): string {
  const start = url.indexOf('?');
  if (start === -1) return url;
  const parameters = url.slice(start + 1).split('&');
  return `${url.slice(0, start)}?${parameters.map(withoutValue).join('&')}`;
}

function withoutValue(parameter: string): string {
  const end = parameter.indexOf('=');
  return end === -1 ? HIDDEN : `${parameter.slice(0, end)}=${HIDDEN}`;
}
