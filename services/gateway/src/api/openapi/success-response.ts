import type { Route } from '../../http/request/route.ts';
import { COMMON_HEADERS, IDEMPOTENCY_REPLAYED } from './response-headers.ts';
import { exampleOf } from './examples.ts';
import type { JsonSchema, SchemaRegistry } from './json-schemas.ts';

/** Returns the success response of a route, in its envelope, by status. */
export function successResponse(route: Route, schemas: SchemaRegistry): Record<string, JsonSchema> {
  const { status, message } = route.response;
  const { schema, example } = envelopeOf(route, schemas);
  const takesKey = route.headers?.some(({ name }) => name === 'Idempotency-Key') ?? false;
  return {
    [status]: {
      description: message,
      headers: { ...COMMON_HEADERS, ...(takesKey && IDEMPOTENCY_REPLAYED) },
      content: { 'application/json': { schema, example } },
    },
  };
}

interface Envelope {
  schema: JsonSchema;
  example: JsonSchema;
}

function envelopeOf({ response }: Route, schemas: SchemaRegistry): Envelope {
  const { message } = response;
  const data = response.data && schemas.ofOutput(response.data);
  const properties = {
    success: { const: true },
    message: { type: 'string', description: 'For people. The text may change' },
    ...(data && { data }),
    ...(response.hasCursor && { nextCursor: NEXT_CURSOR }),
  };
  const example = data && { data: exampleOf(data, schemas.named) };
  return {
    schema: {
      type: 'object',
      required: Object.keys(properties),
      properties,
      additionalProperties: false,
    },
    example: {
      success: true,
      message,
      ...example,
      ...(response.hasCursor && { nextCursor: null }),
    },
  };
}

const NEXT_CURSOR = {
  type: ['string', 'null'],
  description: 'The `cursor` of the next page; null on the last page',
};
