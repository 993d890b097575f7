import { pathsOf, type Route } from '../../http/route.ts';
import type { FailureAnswers } from './failure-answers.ts';
import type { JsonSchema, SchemaBook } from './json-schemas.ts';
import { parametersOf } from './parameters.ts';
import { requestBody } from './request-body.ts';
import { successAnswer } from './success-answer.ts';

/** Under this tag stand the same operations at their other address. */
export const ALIAS_TAG = 'Other addresses';

export interface Operation {
  path: string;
  method: string;
  operation: JsonSchema;
}

/** A route at every address where it is mounted, the contract's own address first. */
export function operationsOf(
  route: Route,
  book: SchemaBook,
  failures: FailureAnswers,
): Operation[] {
  const body = requestBody(route, book);
  const same = {
    parameters: parametersOf(route, book),
    ...(body && { requestBody: body }),
    responses: { ...successAnswer(route, book), ...failures.of(route) },
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
    description: `The same as \`${route.method.toUpperCase()} ${main.replaceAll(/:(\w+)/g, '{$1}')}\`, under its other prefix.`,
  };
}

/** Resource and action: `webhookCreate`, `webhookRotateSecret`, `webhookMessageDeliveries`. */
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
