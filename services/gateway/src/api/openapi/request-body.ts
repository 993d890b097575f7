import type { Route } from '../../http/route.ts';
import { exampleId } from '../../http/answers/fields.ts';
import { exampleOf } from './examples.ts';
import { resolve, type JsonSchema, type SchemaBook } from './json-schemas.ts';

type Examples = Record<string, { summary: string; value: JsonSchema }>;

const url = 'https://example.com/webhooks';
const appId = exampleId('app');

/** Bodies whose fields exclude each other; those of the others are derived from their fields. */
const EXAMPLES: Record<string, Examples> = {
  CreateWebhook: {
    app: {
      summary: 'For an app, signed with its own secret',
      value: { url, appId, name: 'Orders', eventTypes: ['order.paid'] },
    },
    global: {
      summary: 'Global: of a project and an environment',
      value: { url, projectId: exampleId('proj'), environmentId: 'live' },
    },
    hmac: {
      summary: 'Signed with a secret and in a header of your choice',
      value: {
        url,
        appId,
        authMethod: 'hmac',
        hmacHeader: 'X-Signature',
        hmacSecret: 'a long random text',
      },
    },
    basic: {
      summary: 'User name and password',
      value: {
        url,
        appId,
        authMethod: 'basic',
        basicAuthUsername: 'posthorn',
        basicAuthPassword: 'a long random text',
      },
    },
    apiKey: {
      summary: 'A key in a header, and a header for every delivery',
      value: {
        url,
        appId,
        authMethod: 'apiKey',
        apiKey: 'a long random text',
        apiKeyHeader: 'X-Endpoint-Key',
        customHeaders: [{ key: 'X-Tenant', value: 'acme' }],
      },
    },
  },
  UpdateWebhook: {
    move: { summary: 'Another address and name', value: { url, name: 'Orders (new)' } },
    pause: { summary: 'Stop deliveries for now', value: { disabled: true } },
    authenticate: {
      summary: 'Another way to authenticate',
      value: {
        authMethod: 'basic',
        basicAuthUsername: 'posthorn',
        basicAuthPassword: 'a long random text',
      },
    },
  },
  CreateMessage: {
    app: {
      summary: 'To every webhook of an app that wants the event type',
      value: { appId, eventType: 'order.paid', payload: { order: 17, total: '12.50' } },
    },
    webhook: {
      summary: 'To one webhook',
      value: { webhookId: exampleId('wh'), payload: { order: 17, total: '12.50' } },
    },
  },
};

/** Null for routes that read no body. */
export function requestBody(route: Route, book: SchemaBook): JsonSchema | null {
  if (!route.body) return null;
  const schema = book.ofInput(route.body);
  return {
    required: !route.isBodyOptional,
    content: { 'application/json': { schema, examples: examplesOf(schema, book) } },
  };
}

function examplesOf(schema: JsonSchema, { named }: SchemaBook): Examples {
  const { name } = resolve(schema, named);
  const known = EXAMPLES[name ?? ''];
  const value = exampleOf(schema, named) as JsonSchema;
  return known ?? { typical: { summary: 'Typical', value } };
}
