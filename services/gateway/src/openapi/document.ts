import { VERSION } from '@posthorn/platform/service/metrics.ts';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { pathsOf, type Route } from '../http/route.ts';
import { exampleId } from '../routes/fields.ts';
import { exampleOf } from './examples.ts';
import {
  createSchemaRegistry,
  type JsonSchema,
  resolve,
  type SchemaRegistry,
} from './json-schemas.ts';
import {
  createFailureResponses,
  FAILURE_SCHEMA,
  type FailureResponses,
  NAMED_HEADERS,
  PROBLEM_SCHEMA,
  successResponse,
} from './responses.ts';

const GUIDE = readFileSync(join(import.meta.dirname, 'guide.md'), 'utf8');

/** Creates the OpenAPI 3.1 document of the routes (docs/decisions/0011-openapi-from-zod.md). */
export function createDocument(routes: readonly Route[]): JsonSchema {
  const schemas = createSchemaRegistry();
  const failures = createFailureResponses();
  const paths = pathsFrom(routes, schemas, failures);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Posthorn API',
      version: VERSION,
      summary:
        'Webhook delivery: signed, retried on a fixed schedule, with a record of every attempt',
      description: GUIDE,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [
      { url: '/', description: 'The gateway that serves this document. Clients set their own' },
    ],
    security: SCHEMES.map((scheme) => ({ [scheme]: [] })),
    tags: tagsOf(routes),
    paths,
    webhooks: { delivery: DELIVERY_REQUEST },
    components: {
      securitySchemes: SECURITY_SCHEMES,
      schemas: { Failure: FAILURE_SCHEMA, Problem: PROBLEM_SCHEMA, ...schemas.named },
      responses: failures.named,
      parameters: NAMED_PARAMETERS,
      headers: NAMED_HEADERS,
    },
  };
}

/** Two ways to send an API key. */
const SECURITY_SCHEMES = {
  apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'Your API key' },
  bearer: { type: 'http', scheme: 'bearer', description: 'Your API key' },
};

const SCHEMES = Object.keys(SECURITY_SCHEMES);

/** The subject of each section of the API. A section without a text fails the lint. */
const TAGS: Readonly<Record<string, string>> = {
  Projects: 'A project groups apps, such as those of one platform or environment',
  Apps: 'An app is one of your customers, with webhooks of its own',
  'Event types': 'The catalogue of a project: what its messages are called and what they contain',
  Webhooks: 'A webhook is an endpoint of a customer, and how deliveries to it are signed',
  'Webhook messages': 'Sending messages, and finding them again',
  Deliveries: 'A delivery is one message on its way to one webhook, with every attempt',
  'API keys': 'Keys of your company, for everything or for a part of it',
  'Signing keys': 'The Ed25519 keys of your company',
  'Audit log': 'Who changed what, and who read secrets',
  Statistics: 'Counts of attempts over time',
  Overview: 'What is going on, and finding things by name or id',
  Portal: 'Pages that show your customers their own app',
  People: 'Who signs in to the dashboard of your company, and with which role',
};

function tagsOf(routes: readonly Route[]): JsonSchema[] {
  const names = new Set(routes.map(({ tag }) => tag));
  return [...names].map((name) => ({ name, ...(name in TAGS && { description: TAGS[name] }) }));
}

/** Returns the operation of each route, by its main address and method. The guide describes the other addresses. */
function pathsFrom(
  routes: readonly Route[],
  schemas: SchemaRegistry,
  failures: FailureResponses,
): Record<string, JsonSchema> {
  const paths: Record<string, JsonSchema> = {};
  for (const route of routes) {
    const path = pathsOf(route)[0].replaceAll(/:(\w+)/g, '{$1}');
    (paths[path] ??= {})[route.method] = operationOf(route, schemas, failures);
  }
  return paths;
}

function operationOf(
  route: Route,
  schemas: SchemaRegistry,
  failures: FailureResponses,
): JsonSchema {
  const { tag, operationId, summary, description } = route;
  const body = requestBody(route, schemas);
  return {
    tags: [tag],
    operationId,
    summary,
    ...(description !== undefined && { description }),
    parameters: parametersOf(route, schemas),
    security: securityOf(route),
    ...(body && { requestBody: body }),
    responses: { ...successResponse(route, schemas), ...failures.of(route) },
  };
}

/** Every key may use a route without a scope; everyone, without a key, one that is for everyone. */
function securityOf({ scope, forEveryone }: Route): JsonSchema[] {
  const keyed = SCHEMES.map((scheme) => ({ [scheme]: scope === undefined ? [] : [scope] }));
  return forEveryone ? [{}, ...keyed] : keyed;
}

/** For `components.parameters`. */
const NAMED_PARAMETERS: Record<string, JsonSchema> = {
  CompanyId: companyId('Id of your company. Optional; must be the company of the API key'),
  CompanyIdWithKey: companyId(
    'Id of your company, which must be that of the API key. Required with `x-api-key`, optional with `Authorization: Bearer`',
  ),
  RequestId: {
    in: 'header',
    name: 'X-Request-Id',
    description:
      'Identifies the request in the logs of the service and in its response. 8 to 128 of `A-Z a-z 0-9 . _ -`; any other value is replaced',
    schema: { type: 'string', examples: ['order-17-attempt-1'] },
  },
};

function companyId(description: string): JsonSchema {
  const schema = { type: 'string', minLength: 1, examples: [exampleId('comp')] };
  return { in: 'header', name: 'companyid', description, schema };
}

const reference = (name: string): JsonSchema => ({ $ref: `#/components/parameters/${name}` });

/** Returns the parameters of a route: in path, query and headers. */
function parametersOf(route: Route, schemas: SchemaRegistry): JsonSchema[] {
  return [
    ...pathParameters(route),
    ...queryParameters(route, schemas),
    ...headerParameters(route, schemas),
    reference(route.needsCompanyId ? 'CompanyIdWithKey' : 'CompanyId'),
    reference('RequestId'),
  ];
}

const ID_PREFIXES = {
  projectId: 'proj',
  appId: 'app',
  webhookId: 'wh',
  messageId: 'msg',
  deliveryId: 'dlv',
  resendId: 'rsnd',
  cancellationId: 'cncl',
  keyId: 'key',
} as const;

/** A path accepts any text: an id that does not exist gets 404. */
function pathParameters({ path }: Route): JsonSchema[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    in: 'path',
    name,
    required: true,
    schema: { type: 'string', minLength: 1, ...exampleOfId(name) },
  }));
}

function exampleOfId(name: string): JsonSchema {
  if (!Object.hasOwn(ID_PREFIXES, name)) return {};
  return { examples: [exampleId(ID_PREFIXES[name as keyof typeof ID_PREFIXES])] };
}

function queryParameters({ query }: Route, schemas: SchemaRegistry): JsonSchema[] {
  const { properties } = schemas.ofOutput(query) as { properties: Record<string, JsonSchema> };
  return Object.entries(query.shape).map(([name, check]) => {
    const { description, ...schema } = properties[name] ?? {};
    const absent: z.ZodSafeParseResult<unknown> = z.safeParse(check, undefined);
    return {
      in: 'query',
      name,
      required: !absent.success,
      ...(description !== undefined && { description }),
      schema: { ...schema, ...(absent.data !== undefined && { default: absent.data }) },
    };
  });
}

function headerParameters({ headers = [] }: Route, schemas: SchemaRegistry): JsonSchema[] {
  return headers.map(({ name, description, schema }) => ({
    in: 'header',
    name,
    description,
    schema: schemas.ofInput(schema),
  }));
}

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
    svix: {
      summary: 'Moved from Svix, with the secret and the headers that its receiver knows',
      value: {
        url,
        appId,
        secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3',
        signatureHeaders: ['webhook', 'svix'],
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
      value: {
        appId,
        eventType: 'order.paid',
        payload: { order: 17, total: '12.50' },
        tags: ['order-17'],
        externalId: 'evt-2026-000017',
      },
    },
    webhook: {
      summary: 'To one webhook',
      value: { webhookId: exampleId('wh'), payload: { order: 17, total: '12.50' } },
    },
  },
  DeliveryFilter: {
    eventType: {
      summary: 'Of one event type, of messages since then',
      value: { eventType: 'order.paid', since: '2026-01-31T09:30:00.000Z' },
    },
    webhook: {
      summary: 'Of an app, to one of its webhooks',
      value: { appId, webhookId: exampleId('wh') },
    },
  },
  BeginHold: {
    open: { summary: 'Until it is resumed', value: { reason: 'maintenance of the endpoint' } },
  },
  CreateMessages: {
    app: {
      summary: 'To the webhooks of apps that select the event type, each with a key of its own',
      value: {
        messages: [
          {
            appId,
            eventType: 'order.paid',
            payload: { order: 17, total: '12.50' },
            idempotencyKey: 'order-17-paid',
          },
          {
            appId,
            eventType: 'order.paid',
            payload: { order: 18, total: '99.00' },
            idempotencyKey: 'order-18-paid',
          },
        ],
      },
    },
  },
};

/** Returns null for routes without a body. */
function requestBody(route: Route, schemas: SchemaRegistry): JsonSchema | null {
  if (!route.body) return null;
  const plain = schemas.ofInput(route.body);
  const examples = examplesOf(plain, schemas);
  const created = route.upsert && schemas.ofInput(route.upsert.body);
  // With `upsert=true` the body is that of a creation.
  const schema = created ? { anyOf: [plain, created] } : plain;
  return {
    required: !route.isBodyOptional,
    content: { 'application/json': { schema, examples } },
  };
}

function examplesOf(schema: JsonSchema, { named }: SchemaRegistry): Examples {
  const { name } = resolve(schema, named);
  const known = EXAMPLES[name ?? ''];
  const value = exampleOf(schema, named) as JsonSchema;
  return known ?? { typical: { summary: 'Typical', value } };
}

const SIGNATURE = '9b1c1e0d5f3a4c7d8e2f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5';

const DESCRIPTION = `The request that an endpoint receives. Its body is the \`payload\` of the message, byte for byte.

Every delivery has the headers of [Standard Webhooks](https://www.standardwebhooks.com), the webhook's \`customHeaders\`, and one header of authentication:

| \`authMethod\` | header |
| --- | --- |
| \`hmac\` | \`X-Service-Signature\`, or the header that \`hmacHeader\` names: the hex HMAC SHA-256 of the body. The key is the text of \`hmacSecret\`, which defaults to the \`secret\` of the webhook |
| \`hmac\` with \`signatureAlgorithm: ed25519\` | none: \`webhook-signature\` has Ed25519 signatures instead, which the public keys at \`GET /.well-known/webhooks-keys/{companyId}\` verify |
| \`basic\` | \`Authorization: Basic …\`: the base64 of user name, colon and password |
| \`apiKey\` | the header that \`apiKeyHeader\` names, with the value of \`apiKey\` |
| \`oauth2\` | \`Authorization: Bearer …\`: an access token, which Posthorn requests at \`oauth2TokenUrl\` with the client credentials grant (RFC 6749, section 4.4), caches, and requests again before it expires or after a 401 |

The first attempt is made at once. Further attempts follow 5 seconds, 5 minutes, 30 minutes, 2 hours, 5 hours and 10 hours after the end of the failed attempt before. A delivery may arrive twice, with the same \`webhook-id\`.`;

function header(name: string, description: string, example: string, isAlways = true): JsonSchema {
  const schema = { type: 'string', examples: [example] };
  return { in: 'header', name, required: isAlways, description, schema };
}

const HEADERS = [
  header('webhook-id', 'Id of the message, the same in every attempt', exampleId('msg')),
  header('webhook-timestamp', 'Time of this attempt, in seconds since 1970', '1769851800'),
  header(
    'webhook-signature',
    '`v1,` and the base64 HMAC SHA-256 of `{webhook-id}.{webhook-timestamp}.{body}`. The key is the part of the `secret` after `whsec_`, decoded from base64. During the grace period of a rotation there are two signatures, separated by a space. With `signatureAlgorithm: ed25519` it is `v1a,` and the base64 Ed25519 signature of the same text',
    'v1,Ce8pWNEdXUsSJJN4nXg1cWN0PN0Yd0y1Zz8Y1w9V2dM=',
  ),
  header(
    'svix-id',
    'With `svix` in `signatureHeaders`: the value of `webhook-id`',
    exampleId('msg'),
    false,
  ),
  header(
    'svix-timestamp',
    'With `svix` in `signatureHeaders`: the value of `webhook-timestamp`',
    '1769851800',
    false,
  ),
  header(
    'svix-signature',
    'With `svix` in `signatureHeaders`: the value of `webhook-signature`',
    'v1,Ce8pWNEdXUsSJJN4nXg1cWN0PN0Yd0y1Zz8Y1w9V2dM=',
    false,
  ),
  header('User-Agent', 'Posthorn and its version', `Posthorn/${VERSION}`),
  header(
    'X-Service-Signature',
    'With `hmac` and `hmac-sha256`. `hmacHeader` sets the name',
    SIGNATURE,
    false,
  ),
  header(
    'Authorization',
    'With `basic`; with `oauth2`, `Bearer` and the token',
    'Basic cG9zdGhvcm46c2VjcmV0',
    false,
  ),
  header(
    'X-Endpoint-Key',
    'With `apiKey`. `apiKeyHeader` sets the name',
    'a long random text',
    false,
  ),
];

/** The request that Posthorn sends (OpenAPI 3.1, `webhooks`). */
const DELIVERY_REQUEST: JsonSchema = {
  post: {
    operationId: 'delivery',
    summary: 'A delivery to your endpoint',
    description: DESCRIPTION,
    security: [],
    parameters: HEADERS,
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: { type: 'object' },
          example: { order: 17, total: '12.50' },
        },
      },
    },
    responses: {
      '2XX': { description: 'The delivery succeeded. Only the status counts, not the body.' },
      default: {
        description:
          'The attempt failed and is retried on the schedule, as after no response within 15 seconds. Redirects are not followed.',
      },
    },
  },
};
