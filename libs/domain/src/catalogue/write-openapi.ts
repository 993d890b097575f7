import type { JsonObject } from '../filter.ts';
import { mapSchemas } from './map-schemas.ts';
import type { ImportedEventType } from './read-openapi.ts';

type Described = Omit<ImportedEventType, 'archived'>;

/** Returns the OpenAPI 3.1 document of a catalogue, which `readOpenApi` reads back without a difference. */
export function writeOpenApi(title: string, webhooks: JsonObject): JsonObject {
  return {
    openapi: '3.1.1',
    info: { title, version: '1' },
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    webhooks,
  };
}

/** Returns the webhook of an event type: one of the `webhooks` of a document, by its name. */
export function writeWebhook(eventType: Described): JsonObject {
  const { name, description, group, schema, example, deprecated } = eventType;
  const content = {
    ...(schema !== null && { schema: movedSchema(parsed(schema), schemaPlace(name)) }),
    ...(example !== null && { example: parsed(example) }),
  };
  return {
    post: {
      ...(group !== null && { tags: [group] }),
      ...(description !== '' && { description }),
      ...(deprecated && { deprecated }),
      requestBody: { required: true, content: { 'application/json': content } },
      responses: { '2XX': { description: 'Received' } },
    },
  };
}

const parsed = (text: string): JsonObject => JSON.parse(text) as JsonObject;

const schemaPlace = (name: string): string =>
  `#/webhooks/${pointerStep(name)}/post/requestBody/content/application~1json/schema`;

/** The characters of names of event types need no percent-encoding in an address. */
const pointerStep = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

/** In a document, `#` is the document: what refers to the schema itself refers to its place. */
function movedSchema(schema: JsonObject, place: string): JsonObject {
  return mapSchemas(schema, (each) => {
    const { $ref } = each;
    const isOwn = typeof $ref === 'string' && ($ref === '#' || $ref.startsWith('#/'));
    return isOwn ? { ...each, $ref: place + $ref.slice(1) } : each;
  }) as JsonObject;
}
