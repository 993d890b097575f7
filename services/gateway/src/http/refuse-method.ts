import type { RequestHandler } from 'express';
import { ApiError } from './api-error.ts';
import { pathsOf, type Route } from './request/route.ts';

/** Returns the methods of each path, as `Allow` lists them. */
export function methodsByPath(routes: readonly Route[]): Map<string, string[]> {
  const methods = new Map<string, string[]>();
  for (const route of routes) {
    for (const path of pathsOf(route)) {
      methods.set(path, [...(methods.get(path) ?? []), route.method.toUpperCase()]);
    }
  }
  return methods;
}

/** RFC 9110, 15.5.6. */
export function refuseMethod(methods: readonly string[]): RequestHandler {
  const allow = methods.join(', ');
  return (request) => {
    throw new ApiError(
      405,
      'method_not_allowed',
      `${request.path} does not support ${request.method}.`,
      { headers: { Allow: allow } },
    );
  };
}
