import { z } from 'zod';
import { exampleId } from '../../http/responses/fields.ts';
import type { Route } from '../../http/request/route.ts';
import type { JsonSchema, SchemaRegistry } from './json-schemas.ts';

/** For `components.parameters`. */
export const NAMED_PARAMETERS: Record<string, JsonSchema> = {
  CompanyId: companyId(false, 'Id of your company. Optional; must be the company of the API key'),
  RequiredCompanyId: companyId(true, 'Id of your company. Must be the company of the API key'),
  RequestId: {
    in: 'header',
    name: 'X-Request-Id',
    description:
      'Identifies the request in the logs of the service and in its response. 8 to 128 of `A-Z a-z 0-9 . _ -`; any other value is replaced',
    schema: { type: 'string', examples: ['order-17-attempt-1'] },
  },
};

function companyId(required: boolean, description: string): JsonSchema {
  const schema = { type: 'string', minLength: 1, examples: [exampleId('comp')] };
  return { in: 'header', name: 'companyid', required, description, schema };
}

const reference = (name: string): JsonSchema => ({ $ref: `#/components/parameters/${name}` });

/** Returns the parameters of a route: in path, query and headers. */
export function parametersOf(route: Route, schemas: SchemaRegistry): JsonSchema[] {
  return [
    ...pathParameters(route),
    ...queryParameters(route, schemas),
    ...headerParameters(route, schemas),
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
