import { exampleId } from '../routes/fields.ts';
import { type JsonSchema, resolve } from './json-schemas.ts';

const SIGNATURE = '9b1c1e0d5f3a4c7d8e2f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5';
const JSON_HEADER = { key: 'Content-Type', value: 'application/json' };

const CREATED_AT = '2026-01-31T09:30:00.000Z';

/** An attempt before it is made, as the creation of a message returns it. */
const PLANNED_ATTEMPT = {
  id: exampleId('att'),
  processed: false,
  resend: false,
  statusCode: null,
  response: null,
  headers: [JSON_HEADER],
  createdAt: CREATED_AT,
  updatedAt: CREATED_AT,
};

/** Typical values by name of the field, or by schema and field where the schema makes a difference. */
const TYPICAL: Record<string, unknown> = {
  name: 'Orders',
  description: 'Messages about orders',
  prefix: 'phk_Y2hvb3Nl',
  url: 'https://example.com/webhooks',
  secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=',
  hmacSecret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=',
  hmacHeader: 'X-Service-Signature',
  customHeaders: [{ key: 'X-Tenant', value: 'acme' }],
  headers: [JSON_HEADER],
  responseHeaders: [JSON_HEADER],
  eventType: 'order.paid',
  eventTypes: ['order.paid'],
  tags: ['order-17'],
  externalId: 'evt-2026-000017',
  payload: '{"order": 17, "total": "12.50"}',
  signature: SIGNATURE,
  processed: true,
  statusCode: 200,
  response: 'ok',
  attemptCount: 1,
  durationMs: 84,
  reason: null,
  failureReason: null,
  nextAttemptAt: null,
  rateLimitPerSecond: null,
  graceSeconds: 3_600,
  successRate: 0.98,
  latencyMs: { p50: 84, p95: 212 },
  concurrency: { now: 42, floor: 1, ceiling: 1_000 },
  ratePerSecond: null,
  pausedUntil: null,
  total: 12,
  succeeded: 9,
  failed: 1,
  'CreatedMessage.attemptCount': 0,
  'CreatedMessage.deliveryAttempt': PLANNED_ATTEMPT,
  'Delivery.status': 'delivered',
  'Message.status': 'delivered',
  'Message.delivered': true,
  'ListedMessage.status': 'delivered',
  'ListedMessage.delivered': true,
  'Overview.latencyMs': { p50: 84, p99: 640 },
  'StatsPoint.latencyMs': { mean: 92, max: 1_204, p50: 84, p95: 212, p99: 640 },
};

/** The position of a schema: the named schema around it, and the name of the field. */
interface SchemaPosition {
  owner: string;
  field: string;
}

/** Returns an example that fits the schema: its own, a typical value of the field, or the simplest value. */
export function exampleOf(
  schema: JsonSchema,
  named: Record<string, JsonSchema>,
  place: SchemaPosition = { owner: '', field: '' },
): unknown {
  const found = resolve(schema, named);
  const [own] = (schema.examples ?? found.schema.examples ?? []) as unknown[];
  if (own !== undefined) return own;
  for (const key of [`${place.owner}.${place.field}`, place.field]) {
    if (Object.hasOwn(TYPICAL, key)) return TYPICAL[key];
  }
  return simplest(found.schema, named, found.name ?? place.owner);
}

function simplest(schema: JsonSchema, named: Record<string, JsonSchema>, owner: string): unknown {
  const { enum: allowed, anyOf, oneOf, type, properties, items } = schema;
  const [variant] = (anyOf ?? (properties ? [] : oneOf) ?? []) as JsonSchema[];
  if (variant) return exampleOf(variant, named, { owner, field: '' });
  if ('const' in schema) return schema.const;
  if (Array.isArray(allowed)) return allowed[0];
  switch (Array.isArray(type) ? type[0] : type) {
    case 'object': {
      const fields = Object.entries((properties ?? {}) as Record<string, JsonSchema>);
      return Object.fromEntries(
        fields.map(([field, each]) => [field, exampleOf(each, named, { owner, field })]),
      );
    }
    case 'array':
      return [exampleOf(items as JsonSchema, named, { owner, field: '' })];
    case 'integer':
    case 'number':
      return schema.minimum ?? 0;
    case 'boolean':
      return false;
    default:
      return 'text';
  }
}
