import { APP_FIELDS } from './app-fields.ts';
import { authFieldsAudited } from './auth-methods.ts';
import { EVENT_TYPE_FIELDS } from './event-type-fields.ts';
import { MASK } from './field-types.ts';
import { objectFieldsShown } from './object-fields.ts';
import { type GroupRole, groupRoleText } from './people.ts';
import { PROJECT_FIELDS } from './project-fields.ts';
import { fieldsAudited } from './webhook-fields.ts';

/** Everything that the audit log records (docs/contract.md C17). */
export const AUDIT_ACTIONS = [
  'company.created',
  'company.suspended',
  'company.resumed',
  'company.exported',
  'company.deleted',
  'api_key.created',
  'api_key.rotated',
  'api_key.revoked',
  'signing_key.rotated',
  'dashboard_link.created',
  'dashboard.signed_in',
  'portal_link.created',
  'portal_link.revoked',
  'portal.signed_in',
  'portal_settings.updated',
  'person.signed_in',
  'person.signed_out',
  'person.invited',
  'person.updated',
  'person.removed',
  'person.sessions_ended',
  'invitation.revoked',
  'people_settings.updated',
  'project.created',
  'project.updated',
  'project.deleted',
  'event_type.created',
  'event_type.updated',
  'event_type.deleted',
  'event_type.imported',
  'app.created',
  'app.updated',
  'app.deleted',
  'app.held',
  'app.resumed',
  'webhook.created',
  'webhook.updated',
  'webhook.deleted',
  'webhook.secret_rotated',
  'webhook.secrets_read',
  'webhook.tested',
  'webhook.pending_cancelled',
  'webhook.ordering_key_skipped',
  'delivery.cancelled',
  'deliveries.cancelled',
  'message.payload_erased',
  'delivery.responses_erased',
  'webhook.held',
  'webhook.resumed',
  'resend.started',
  'resend.aborted',
  'replay.started',
  'dead_letters.replayed',
  'ingest_rejects.replayed',
  'encryption_keys.rotated',
] as const;

export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export const AUDIT_TARGETS = [
  'company',
  'apiKey',
  'signingKey',
  'portalLink',
  'person',
  'invitation',
  'project',
  'eventType',
  'app',
  'webhook',
  'message',
  'delivery',
  'resend',
  'cancellation',
  'deadLetters',
  'ingestRejects',
  'encryptionKeys',
] as const;

export type AuditTargetKind = (typeof AUDIT_TARGETS)[number];

/** The object of an action. `id` is null for several objects, and for one that was not created. */
export interface AuditTarget {
  kind: AuditTargetKind;
  id: string | null;
}

/**
 * A visitor of the portal acts by the opened link, a person under the name that they had then. `system`: Posthorn acts
 * because of a setting of the operator.
 */
export type AuditActor =
  | { kind: 'apiKey'; keyId: string }
  | { kind: 'portalLink'; linkId: string }
  | { kind: 'person'; personId: string; name: string | null }
  | { kind: 'admin' }
  | { kind: 'system' };

/**
 * `started` is stored before the change. It remains when the outcome is unknown: the process ended, or the store did
 * not confirm a write. `failed`: the change was refused.
 */
export const AUDIT_OUTCOMES = ['started', 'done', 'failed'] as const;

export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

export interface AuditEvent {
  id: string;
  /** NO_COMPANY for an event of the whole installation. */
  companyId: string;
  action: AuditAction;
  actor: AuditActor;
  target: AuditTarget;
  /** IP address of the client; null for the admin command and the system. */
  clientAddress: string | null;
  /** Null for the admin command and the system. */
  requestId: string | null;
  outcome: AuditOutcome;
  /** Error code of the response; null unless the change was refused. */
  code: string | null;
  /** The requested changes until the event is completed. */
  changes: AuditChange[];
  /** The number of objects that a read returned; null for other events. */
  count: number | null;
  createdAtMs: number;
  /** Null while the event is `started`. */
  completedAtMs: number | null;
}

/** The company of events of the whole installation. No company has this id. */
export const NO_COMPANY = '';

/** A value in the audit log. */
type AuditValue = string | number | boolean | null | string[];

/** One field that an action changed. Null: the field had or has no value. */
export interface AuditChange {
  field: string;
  before: AuditValue;
  after: AuditValue;
}

/** Fields of a resource or of a request, with their real values. */
export type AuditedFields = Readonly<Record<string, unknown>>;

/**
 * The fields whose values the log may have. All other values are hidden, so that a field that is added later cannot
 * bring a secret into the log.
 */
// prettier-ignore
const SHOWN_FIELDS: ReadonlySet<string> = new Set([
  ...fieldsAudited('shown'), 'authMethod', ...authFieldsAudited('shown'),
  ...objectFieldsShown(PROJECT_FIELDS), ...objectFieldsShown(APP_FIELDS), ...objectFieldsShown(EVENT_TYPE_FIELDS),
  'schemaVersion', 'count', 'appId', 'webhookId', 'withSecrets',
  'scopes', 'capabilities', 'origins', 'expiresInSeconds', 'expiresAt', 'graceSeconds', 'keyId', 'newKeyId',
  'since', 'until', 'reason', 'ratePerSecond', 'resendId', 'createdBefore', 'cancelBefore',
  'role', 'disabled', 'groups', 'invitationId', 'sessions', 'apiKeys',
  'cancellationId', 'deliveryId', 'status', 'waiting', 'eventType',
  'filter', 'matched', 'republished', 'resent', 'skipped', 'resealed', 'remaining',
]);

/** Fields with URLs: the values of their query parameters are hidden. */
const URL_FIELDS: ReadonlySet<string> = new Set([
  ...fieldsAudited('url'),
  ...authFieldsAudited('url'),
]);

/** Fields with headers. Any header may carry a credential, so of every value the log only shows that it changed. */
const HEADER_FIELDS: ReadonlySet<string> = new Set(fieldsAudited('each header'));

/** Fields whose values are generated unless a request gives them. */
const GENERATED_FIELDS: ReadonlySet<string> = new Set(fieldsAudited('origin'));
/** The log has this in place of a secret that a request gave. */
const CLIENT_CHOSEN = 'client-chosen';

interface Field {
  /** Only compared, never shown. */
  real: string;
  shown: AuditValue;
}

/** Returns the fields that differ. Secret values are hidden. `given` are the fields of the request. */
export function changesBetween(
  before: AuditedFields,
  after: AuditedFields,
  given: AuditedFields = {},
): AuditChange[] {
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  const names = new Set([...old.keys(), ...now.keys()]);
  const isChosen = (name: string): boolean =>
    GENERATED_FIELDS.has(name) && given[name] !== undefined;
  return [...names]
    .filter((name) => old.get(name)?.real !== now.get(name)?.real)
    .map((field) => ({
      field,
      before: old.get(field)?.shown ?? null,
      after: isChosen(field) ? CLIENT_CHOSEN : (now.get(field)?.shown ?? null),
    }));
}

/** Null and undefined both mean that a field has no value. */
function fieldsOf(values: AuditedFields): Map<string, Field> {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  return new Map(
    given.flatMap(([name, value]): [string, Field][] => {
      if (HEADER_FIELDS.has(name)) return headerFields(name, value);
      return [[name, { real: textOf(value), shown: shownValue(name, value) }]];
    }),
  );
}

function headerFields(name: string, headers: unknown): [string, Field][] {
  return (headers as readonly { key: string; value: string }[]).map(({ key, value }) => [
    `${name}.${key}`,
    { real: value, shown: MASK },
  ]);
}

function shownValue(name: string, value: unknown): AuditValue {
  if (URL_FIELDS.has(name) && typeof value === 'string') return withoutQueryValues(value);
  if (!SHOWN_FIELDS.has(name)) return MASK;
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(entryText);
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  return textOf(value);
}

/** The roles of groups are read by people, who know the form of the admin command. */
const entryText = (entry: unknown): string =>
  isGroupRole(entry) ? groupRoleText(entry) : textOf(entry);

function isGroupRole(entry: unknown): entry is GroupRole {
  return typeof entry === 'object' && entry !== null && 'group' in entry && 'role' in entry;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Hides the values of query parameters: the queries of many URLs contain keys and tokens. */
function withoutQueryValues(url: string): string {
  const start = url.indexOf('?');
  if (start === -1) return url;
  const parameters = url.slice(start + 1).split('&');
  return `${url.slice(0, start)}?${parameters.map(withoutValue).join('&')}`;
}

function withoutValue(parameter: string): string {
  const end = parameter.indexOf('=');
  return end === -1 ? MASK : `${parameter.slice(0, end)}=${MASK}`;
}
