import type { z } from 'zod';
import type { Problem } from '../api-error.ts';
import { checkFields } from './read-fields.ts';
import type { Route } from './route.ts';

/** The parts of a request besides its path and body. */
export interface RequestHead {
  /** The query string as it was received, without the question mark. */
  queryText: string;
  header: (name: string) => string | undefined;
}

export interface ParsedHead {
  query: Record<string, unknown>;
  problems: Problem[];
}

/**
 * Parses and validates query parameters and headers; `companyid` is required on some routes
 * (docs/contract.md C4.3). Unknown parameters are refused: a misspelled filter must not match everything.
 */
export function readHead(head: RequestHead, route: Route): ParsedHead {
  const { query, problems } = checkQuery(head.queryText, route.query);
  return {
    query,
    problems: [...problems, ...companyProblems(head, route), ...headerProblems(head, route)],
  };
}

function companyProblems({ header }: RequestHead, { needsCompanyId }: Route): Problem[] {
  const companyId = header('companyid');
  if (companyId === '') return [{ path: 'companyid', message: 'must not be empty' }];
  const isMissing = needsCompanyId && companyId === undefined;
  return isMissing ? [{ path: 'companyid', message: 'is required, as a header' }] : [];
}

function checkQuery(queryText: string, schema: z.ZodObject): ParsedHead {
  const members = Object.create(null) as Record<string, unknown>;
  const repeated: Problem[] = [];
  for (const [name, value] of new URLSearchParams(queryText)) {
    if (name in members) repeated.push({ path: name, message: 'is given more than once' });
    members[name] = value;
  }
  const checked = checkFields(members, schema, 'is not a query parameter of this address');
  return { query: checked.value ?? {}, problems: [...repeated, ...checked.problems] };
}

function headerProblems({ header }: RequestHead, { headers = [] }: Route): Problem[] {
  return headers.flatMap(({ name, schema }) => {
    const value = header(name);
    if (value === undefined) return [];
    const { error } = schema.safeParse(value);
    if (!error) return [];
    return error.issues.map(({ message }) => ({ path: name, message }));
  });
}
