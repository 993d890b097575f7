import type { RequestHandler } from 'express';
import { ApiError } from '../api-error.ts';
import { methodsOf, pathsOf, type Route } from './route.ts';

/** The labels of a request. Both come from closed sets, whatever a client sends. */
interface RouteLabels {
  /** The method; `other` for one that the route does not have. */
  method: string;
  /** The path of the route without `/api/v1`, with the names of its ids; `unknown` for any other path. */
  route: string;
  /** True when the API has a route of this method, whose responses are timed. */
  isKnown: boolean;
}

export interface KnownRoutes {
  /** `matched` is the path that the router has found; undefined when it was not asked or found none. */
  labelsOf: (method: string, path: string, matched: string | undefined) => RouteLabels;
}

/** An address that is not of the API. */
export interface KnownPage {
  path: string;
  methods: readonly string[];
  /** It lasts as long as its client likes, so it is not timed. */
  isStream?: boolean;
}

const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);
const VERSION = /^\/api\/v1(?=\/)/;

/**
 * Finds the route of a request also when it was refused before the router was asked. It tries all
 * patterns then, about forty, which takes 4 µs.
 */
export function createKnownRoutes(
  routes: readonly Pick<Route, 'method' | 'path' | 'versionedOnly'>[],
  pages: readonly KnownPage[],
): KnownRoutes {
  const paths = [...routes.flatMap(pathsOf), ...pages.map(({ path }) => path)];
  const patterns = paths.map((path) => ({
    path: withoutVersion(path),
    pattern: patternOf(path),
  }));
  // A path without ids is found before one with an id that fits it too, as `/webhook-messages/batch`.
  patterns.sort((one, other) => Number(hasId(one)) - Number(hasId(other)));
  const pathsByPattern = new Map(patterns.map(({ path }) => [path, path]));
  const known = new Set([
    ...routes.flatMap((each) => labelled(each).map((method) => `${method} ${each.path}`)),
    ...pages.flatMap(({ path, methods }) =>
      methods.map((method) => `${method} ${withoutVersion(path)}`),
    ),
  ]);
  const streams = new Set(
    pages.filter((page) => page.isStream).map(({ path }) => withoutVersion(path)),
  );
  function routeOf(path: string, matched: string | undefined): string {
    const found = matched === undefined ? undefined : pathsByPattern.get(withoutVersion(matched));
    return found ?? patterns.find(({ pattern }) => pattern.test(path))?.path ?? 'unknown';
  }
  return {
    labelsOf(given, path, matched) {
      const route = routeOf(path, matched);
      // Express serves HEAD with the handler of GET.
      const method = given === 'HEAD' ? 'GET' : given;
      if (known.has(`${method} ${route}`)) return { method, route, isKnown: !streams.has(route) };
      const isPlain = route === 'unknown' && METHODS.has(method);
      return { method: isPlain ? method : 'other', route, isKnown: false };
    },
  };
}

const hasId = ({ path }: { path: string }): boolean => path.includes(':');

const labelled = (route: Pick<Route, 'method'>): string[] =>
  methodsOf(route).map((method) => method.toUpperCase());

function withoutVersion(path: string): string {
  return path.replace(VERSION, '');
}

function patternOf(path: string): RegExp {
  const escaped = path.replaceAll('.', '\\.').replaceAll(/\*\w+/g, '.+');
  return new RegExp(`^${escaped.replaceAll(/:\w+/g, '[^/]+')}$`);
}

/** Returns the methods of each path, as `Allow` lists them. */
export function methodsByPath(routes: readonly Route[]): Map<string, string[]> {
  const methods = new Map<string, string[]>();
  for (const route of routes) {
    for (const path of pathsOf(route)) {
      methods.set(path, [...(methods.get(path) ?? []), ...labelled(route)]);
    }
  }
  return methods;
}

/** RFC 9110, 15.5.6. */
export function refuseMethod(methods: readonly string[]): RequestHandler {
  const allow = methods.join(', ');
  return (request) => {
    const message = `${request.path} does not support ${request.method}.`;
    throw new ApiError('method_not_allowed', message, { headers: { Allow: allow } });
  };
}
