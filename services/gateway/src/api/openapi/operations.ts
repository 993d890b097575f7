import { pathsOf, type Route } from '../../http/request/route.ts';
import type { FailureResponses } from './failure-responses.ts';
import type { JsonSchema, SchemaRegistry } from './json-schemas.ts';
import { parametersOf } from './parameters.ts';
import { requestBody } from './request-body.ts';
import { successResponse } from './success-response.ts';

/** The tag of operations at their second address. */
export const ALIAS_TAG = 'Other addresses';

export interface Operation {
  path: string;
  method: string;
  operation: JsonSchema;
}

/** Returns the operation of a route at each of its addresses, the main one (docs/contract.md C1.2) first. */
export function operationsOf(
  route: Route,
  schemas: SchemaRegistry,
  failures: FailureResponses,
): Operation[] {
  const body = requestBody(route, schemas);
  const same = {
    parameters: parametersOf(route, schemas),
    security: [{ apiKey: [route.scope] }],
    ...(body && { requestBody: body }),
    responses: { ...successResponse(route, schemas), ...failures.of(route) },
  };
  return addressesOf(route).map((path, index) => ({
    path: path.replaceAll(/:(\w+)/g, '{$1}'),
    method: route.method,
    operation: { ...(index === 0 ? headOf(route) : aliasHeadOf(route)), ...same },
  }));
}

function addressesOf(route: Route): string[] {
  const [main = '', ...others] = pathsOf(route);
  return route.isVersionedInContract ? [...others, main] : [main, ...others];
}

function headOf(route: Route): JsonSchema {
  const { tag, summary, description } = route;
  return {
    tags: [tag],
    operationId: operationIdOf(route),
    summary,
    ...(description !== undefined && { description }),
  };
}

function aliasHeadOf(route: Route): JsonSchema {
  const [main = ''] = addressesOf(route);
  const suffix = route.isVersionedInContract ? 'Unversioned' : 'Versioned';
  return {
    tags: [ALIAS_TAG],
    operationId: operationIdOf(route) + suffix,
    summary: route.summary,
    description: `The same as \`${route.method.toUpperCase()} ${main.replaceAll(/:(\w+)/g, '{$1}')}\`, at its second address.`,
  };
}

/** Returns resource and action, such as `webhookCreate`, `webhookRotateSecret` or `webhookMessageDeliveries`. */
export function operationIdOf({ method, path }: Route): string {
  const words = path.split('/').filter((word) => word !== '' && !word.startsWith(':'));
  const [resource = '', ...actions] = words;
  const singular = resource.replace(/ies$/, 'y').replace(/s$/, '');
  const verb = path.includes(':') ? ON_ONE[method] : ON_ALL[method];
  return camelCase([singular, ...(actions.length > 0 ? actions : [verb ?? method])].join('-'));
}

const ON_ALL: Partial<Record<Route['method'], string>> = { get: 'list', post: 'create' };
const ON_ONE: Partial<Record<Route['method'], string>> = { put: 'update' };

function camelCase(dashed: string): string {
  return dashed.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
