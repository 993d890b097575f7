import { APP_RULES, type FieldRule, MESSAGE_RULES, PROJECT_RULES, WEBHOOK_RULES } from './rules.ts';
import type {
  Attempt,
  DeliverySummary,
  ErrorCode,
  ListedMessage,
  Message,
  Problem,
} from './schema.ts';

// Objects of the test API, and what requests are refused for: pure rules, with their numbers in docs/contract.md.

type Rules = Readonly<Record<string, FieldRule>>;
export type Fields = Readonly<Record<string, unknown>>;

/** A project, an app or a webhook. */
export interface Stored {
  kind: Kind;
  id: string;
  /** The id of what it is deleted with. */
  owner: string | null;
  fields: Fields;
  createdAt: string;
  updatedAt: string;
}

export const KINDS = {
  projects: { prefix: 'proj', rules: PROJECT_RULES, owner: null },
  apps: { prefix: 'app', rules: APP_RULES, owner: 'projectId' },
  webhooks: { prefix: 'wh', rules: WEBHOOK_RULES, owner: 'appId' },
} as const;
export type Kind = keyof typeof KINDS;

const COMPANY_ID = `comp_${'0'.repeat(26)}`;
export const JSON_HEADERS = [{ key: 'Content-Type', value: 'application/json' }];

export class Refusal extends Error {
  readonly status: number;
  readonly code: ErrorCode;
  readonly errors: readonly Problem[] | undefined;

  constructor(status: number, code: ErrorCode, message: string, errors?: readonly Problem[]) {
    super(message);
    this.status = status;
    this.code = code;
    this.errors = errors;
  }
}

export const ownerKind = (kind: Kind): Kind => (kind === 'apps' ? 'projects' : 'apps');

export const isNamed = ({ id, fields: { uid } }: Stored, name: string): boolean =>
  id === name || (typeof uid === 'string' && `uid:${uid}` === name);

export function notFound(what: string): never {
  throw new Refusal(404, 'not_found', `There is no such ${what}.`);
}

export const noRoute = (method: string, path: string): Refusal =>
  new Refusal(404, 'route_not_found', `The test API has no ${method} ${path}`);

const invalid = (errors: readonly Problem[]): Refusal =>
  new Refusal(400, 'invalid_request', 'The request is not valid', errors);

export function checkFields(rules: Rules, fields: Fields, isNew: boolean): void {
  const errors = problemsOf(rules, fields, isNew);
  if (errors.length > 0) throw invalid(errors);
}

function problemsOf(rules: Rules, fields: Fields, isNew: boolean): Problem[] {
  const unknown = Object.keys(fields).filter((name) => !(name in rules));
  const { authMethod = 'hmac' } = fields;
  const required = Object.entries(rules).filter(
    ([, rule]) => isNew && rule.isRequired && (rule.authMethod ?? authMethod) === authMethod,
  );
  const missing = required.filter(([name]) => fields[name] === undefined);
  return [
    ...unknown.map((path) => ({ path, message: 'is unknown' })),
    ...missing.map(([path]) => ({ path, message: 'is required' })),
  ];
}

/** Returns the message. Throws, with `prefix` before the names of fields, when it cannot be one. */
export function checkMessage(message: Fields, prefix = ''): Fields {
  const { payload, ...fields } = withoutNull(message);
  const errors = problemsOf(MESSAGE_RULES, fields, true);
  if (typeof payload !== 'object') errors.push({ path: 'payload', message: 'is required' });
  if ('appId' in fields === 'webhookId' in fields) {
    errors.push({ path: 'appId', message: 'one of appId and webhookId is required' });
  }
  if (errors.length === 0) return message;
  throw invalid(errors.map((each) => ({ ...each, path: `${prefix}${each.path}` })));
}

/** Null is the same as not given (docs/contract.md C1.13). */
export const withoutNull = (fields: Fields): Fields =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null && value !== undefined),
  );

/** `hmac` signs with the secret of the webhook unless it has one of its own. */
export function secretsOf({ authMethod = 'hmac', secret = randomSecret() }: Fields): Fields {
  return { secret, ...(authMethod === 'hmac' && { hmacSecret: secret }) };
}

const randomSecret = (): string =>
  `whsec_${btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))}`;

const defaultOf = (rule: FieldRule): unknown => rule.default ?? null;

/** Returns the object as a list and an update do. */
export function listed({ kind, id, owner, fields, createdAt, updatedAt }: Stored): Fields {
  const { uid = null, metadata = {}, name, description } = fields;
  const common = { id, name, uid, metadata, createdAt, updatedAt };
  const { environment = 'development' } = fields;
  switch (kind) {
    case 'projects':
      return {
        ...common,
        ...(description !== undefined && { description }),
        eventTypePolicy: fields.eventTypePolicy ?? defaultOf(PROJECT_RULES.eventTypePolicy),
        company: COMPANY_ID,
        environment,
      };
    case 'apps': {
      const { storeResponses, storePayloads } = fields;
      return {
        ...common,
        description: description ?? '',
        environment,
        held: null,
        ...(storeResponses !== undefined && { storeResponses }),
        ...(storePayloads !== undefined && { storePayloads }),
      };
    }
    case 'webhooks':
      return {
        ...plainFieldsOf(fields),
        ...common,
        name: name ?? new URL(String(fields.url)).host,
        appId: owner,
        disabledReason: null,
        held: null,
        headers: JSON_HEADERS,
      };
  }
}

/** The fields of a webhook that are shown under their own names, with their defaults. */
function plainFieldsOf(fields: Fields): Fields {
  const rules: Rules = WEBHOOK_RULES;
  const kept = without(rules, 'projectId', 'environmentId', 'authMethod', 'tls');
  const plain = Object.entries(kept).filter(([, rule]) => rule.authMethod === undefined);
  return Object.fromEntries(plain.map(([name, rule]) => [name, fields[name] ?? defaultOf(rule)]));
}

/** Returns the object as a get does. */
export function shown(object: Stored): Fields {
  if (object.kind !== 'webhooks') return listed(object);
  const { authMethod = 'hmac', signatureAlgorithm } = object.fields;
  const rules: [string, FieldRule][] = Object.entries(WEBHOOK_RULES);
  const ofMethod = rules.flatMap(([name, rule]) =>
    rule.authMethod === authMethod && rule.shownAs !== undefined
      ? [[rule.shownAs, object.fields[name] ?? defaultOf(rule)] as const]
      : [],
  );
  const method = {
    method: authMethod === 'apiKey' ? 'api_key' : authMethod,
    ...Object.fromEntries(ofMethod),
  };
  if (signatureAlgorithm !== 'ed25519') Reflect.deleteProperty(method, 'signatureAlgorithm');
  return { ...listed(object), authMethod: method, waiting: 0, blockedKeys: 0 };
}

/** As its creation returns it (docs/contract.md C5.4). */
export function created(object: Stored): Fields {
  if (object.kind !== 'projects') return shown(object);
  return without(listed(object), 'company', 'environment');
}

/** Whether a webhook of the app gets a message with this type (docs/contract.md C7.6). */
export function receives({ fields }: Stored, eventType: string | null): boolean {
  const types = (fields.eventTypes ?? []) as string[];
  if (types.length === 0) return true;
  return eventType !== null && types.some((each) => isSelected(each, eventType));
}

/** By `order.*` every type that begins with `order.` (docs/contract.md C6.11). */
function isSelected(selector: string, eventType: string): boolean {
  if (!selector.endsWith('*')) return selector === eventType;
  return eventType.startsWith(selector.slice(0, -1));
}

export const attemptOf = (id: string, now: string): Attempt => ({
  id,
  processed: false,
  resend: false,
  statusCode: null,
  response: null,
  headers: JSON_HEADERS,
  createdAt: now,
  updatedAt: now,
});

export const listedMessage = (message: Message): ListedMessage =>
  without(message, 'signature', 'headers', 'deliveryAttempt');

/** Whether a message is in a list with these parameters (docs/contract.md C12.1). */
export function matches(message: Message, query: Readonly<Record<string, string>>): boolean {
  const { tag, webhookId, deliveryStatus, since, until, ...fields } = query;
  const { deliveries, tags, createdAt } = message;
  const time = Date.parse(createdAt);
  const isOf = (delivery: DeliverySummary): boolean =>
    delivery.webhookId === webhookId && delivery.status === (deliveryStatus ?? delivery.status);
  return (
    (tag === undefined || tags.includes(tag)) &&
    (webhookId === undefined || deliveries.some(isOf)) &&
    (since === undefined || time >= Date.parse(since)) &&
    (until === undefined || time <= Date.parse(until)) &&
    Object.entries(fields).every(([name, value]) => message[name as keyof Message] === value)
  );
}

function without<T extends object, K extends keyof T>(object: T, ...names: K[]): Omit<T, K> {
  const kept = Object.entries(object).filter(([name]) => !names.includes(name as K));
  return Object.fromEntries(kept) as Omit<T, K>;
}
