import { z } from 'zod';
import { exampleId } from '../../http/answers/fields.ts';
import type { Route } from '../../http/route.ts';
import type { JsonSchema, SchemaBook } from './json-schemas.ts';

/** For `components.parameters`. */
export const NAMED_PARAMETERS: Record<string, JsonSchema> = {
  CompanyId: companyId(false, 'Id of your company. May be left out; a wrong one is refused'),
  RequiredCompanyId: companyId(true, 'Id of your company'),
  RequestId: {
    in: 'header',
    name: 'X-Request-Id',
    description:
      'Names the request in our logs and its answer, when it has 8 to 128 of `A-Z a-z 0-9 . _ -`; else it gets a name of ours',
    schema: { type: 'string', examples: ['order-17-attempt-1'] },
  },
};

function companyId(required: boolean, description: string): JsonSchema {
  const schema = { type: 'string', minLength: 1, examples: [exampleId('comp')] };
  return { in: 'header', name: 'companyid', required, description, schema };
}

const reference = (name: string): JsonSchema => ({ $ref: `#/components/parameters/${name}` });

/** Everything that a request of the route says besides its body. */
export function parametersOf(route: Route, book: SchemaBook): JsonSchema[] {
  return [
    ...pathParameters(route),
    ...queryParameters(route, book),
    ...headerParameters(route, book),
    reference(route.needsCompanyId ? 'RequiredCompanyId' : 'CompanyId'),
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
  keyId: 'key',
} as const;

/** Any text may stand in a path; what is no id of anything is answered with 404. */
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

function queryParameters({ query }: Route, book: SchemaBook): JsonSchema[] {
  const { properties } = book.ofOutput(query) as { properties: Record<string, JsonSchema> };
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

function headerParameters({ headers = [] }: Route, book: SchemaBook): JsonSchema[] {
  return headers.map(({ name, description, schema }) => ({
    in: 'header',
    name,
    description,
    schema: book.ofInput(schema),
  }));
}
