import type { Route } from '../../http/route.ts';
import { EVERY_ANSWER_HEADERS, IDEMPOTENCY_REPLAYED } from './answer-headers.ts';
import { exampleOf } from './examples.ts';
import type { JsonSchema, SchemaBook } from './json-schemas.ts';

/** The success answer of a route in its envelope, by status. */
export function successAnswer(route: Route, book: SchemaBook): Record<string, JsonSchema> {
  const { status, message } = route.answer;
  const { schema, example } = envelopeOf(route, book);
  const takesKey = route.headers?.some(({ name }) => name === 'Idempotency-Key') ?? false;
  return {
    [status]: {
      description: message,
      headers: { ...EVERY_ANSWER_HEADERS, ...(takesKey && IDEMPOTENCY_REPLAYED) },
      content: { 'application/json': { schema, example } },
    },
  };
}

interface Envelope {
  schema: JsonSchema;
  example: JsonSchema;
}

function envelopeOf({ answer }: Route, book: SchemaBook): Envelope {
  const { message } = answer;
  const data = answer.data && book.ofOutput(answer.data);
  const properties = {
    success: { const: true },
    message: { type: 'string', description: 'For people; may change' },
    ...(data && { data }),
    ...(answer.hasCursor && { nextCursor: NEXT_CURSOR }),
  };
  const example = data && { data: exampleOf(data, book.named) };
  return {
    schema: {
      type: 'object',
      required: Object.keys(properties),
      properties,
      additionalProperties: false,
    },
    example: { success: true, message, ...example, ...(answer.hasCursor && { nextCursor: null }) },
  };
}

const NEXT_CURSOR = {
  type: ['string', 'null'],
  description: 'The `cursor` of the next page; null at the end',
};
