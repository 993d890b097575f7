import type { Route } from '../../http/request/route.ts';
import { exampleId } from '../../http/responses/fields.ts';
import { exampleOf } from './examples.ts';
import { resolve, type JsonSchema, type SchemaRegistry } from './json-schemas.ts';

type Examples = Record<string, { summary: string; value: JsonSchema }>;

const url = 'https://example.com/webhooks';
const appId = exampleId('app');

/** Examples of bodies whose fields exclude each other. Those of other bodies are derived from their fields. */
const EXAMPLES: Record<string, Examples> = {
  CreateWebhook: {
    app: {
      summary: 'For an app, signed with the generated secret',
      value: { url, appId, name: 'Orders', eventTypes: ['order.paid'] },
    },
    global: {
      summary: 'Global, for a project and an environment',
      value: { url, projectId: exampleId('proj'), environmentId: 'live' },
    },
    hmac: {
      summary: 'Signed with your own secret, in your own header',
      value: {
        url,
        appId,
        authMethod: 'hmac',
        hmacHeader: 'X-Signature',
        hmacSecret: 'a long random text',
      },
    },
    ed25519: {
      summary: 'Signed with the key of your company',
      value: { url, appId, authMethod: 'hmac', signatureAlgorithm: 'ed25519' },
    },
    basic: {
      summary: 'Basic authentication',
      value: {
        url,
        appId,
        authMethod: 'basic',
        basicAuthUsername: 'posthorn',
        basicAuthPassword: 'a long random text',
      },
    },
    apiKey: {
      summary: 'A key in a header, and a custom header',
      value: {
        url,
        appId,
        authMethod: 'apiKey',
        apiKey: 'a long random text',
        apiKeyHeader: 'X-Endpoint-Key',
        customHeaders: [{ key: 'X-Tenant', value: 'acme' }],
      },
    },
    oauth2: {
      summary: 'A bearer token, from the token server of the receiver',
      value: {
        url,
        appId,
        authMethod: 'oauth2',
        oauth2TokenUrl: 'https://login.example.com/oauth2/token',
        oauth2ClientId: 'posthorn',
        oauth2ClientSecret: 'a long random text',
        oauth2Scope: 'orders.write',
      },
    },
  },
  UpdateWebhook: {
    move: { summary: 'Change URL and name', value: { url, name: 'Orders (new)' } },
    pause: { summary: 'Stop deliveries', value: { disabled: true } },
    authenticate: {
      summary: 'Change the method of authentication',
      value: {
        authMethod: 'basic',
        basicAuthUsername: 'posthorn',
        basicAuthPassword: 'a long random text',
      },
    },
  },
  CreateMessage: {
    app: {
      summary: 'To the webhooks of an app that select the event type',
      value: { appId, eventType: 'order.paid', payload: { order: 17, total: '12.50' } },
    },
    webhook: {
      summary: 'To one webhook',
      value: { webhookId: exampleId('wh'), payload: { order: 17, total: '12.50' } },
    },
  },
};

/** Returns null for routes without a body. */
export function requestBody(route: Route, schemas: SchemaRegistry): JsonSchema | null {
  if (!route.body) return null;
  const schema = schemas.ofInput(route.body);
  return {
    required: !route.isBodyOptional,
    content: { 'application/json': { schema, examples: examplesOf(schema, schemas) } },
  };
}

function examplesOf(schema: JsonSchema, { named }: SchemaRegistry): Examples {
  const { name } = resolve(schema, named);
  const known = EXAMPLES[name ?? ''];
  const value = exampleOf(schema, named) as JsonSchema;
  return known ?? { typical: { summary: 'Typical', value } };
}
