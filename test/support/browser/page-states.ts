import type { Page, Route } from 'playwright-core';

/** What the API answers while a page is looked at. */
export type State = 'empty' | 'loading' | 'failed' | 'forbidden' | 'crowded';

const CALLS = /\/api\/v1\/(?!live)/;

/** From now on, the page gets answers of this kind to every call of the API. */
export async function answerAs(page: Page, state: State): Promise<void> {
  await page.route(CALLS, (route) => ANSWERS[state](route));
}

const ANSWERS: Record<State, (route: Route) => Promise<void>> = {
  empty: (route) => change(route, () => []),
  // Is never answered: the page is closed before.
  loading: () => Promise.resolve(),
  failed: (route) => refuse(route, 503, 'unavailable', 'A store does not answer at the moment.'),
  forbidden: (route) =>
    refuse(route, 403, 'insufficient_scope', 'This API key does not have the scope read.'),
  crowded: (route) => change(route, crowd),
};

async function refuse(route: Route, status: number, code: string, message: string): Promise<void> {
  const json = { success: false, message, code, requestId: 'state-of-a-page' };
  await route.fulfill({ status, json });
}

interface Envelope {
  data?: unknown;
  nextCursor?: unknown;
}

/** Changes the lists in an answer, and leaves everything else. */
async function change(route: Route, changed: (list: unknown[]) => unknown[]): Promise<void> {
  const response = await route.fetch();
  const json = (await response.json()) as Envelope;
  const list = json.data;
  if (!Array.isArray(list)) return route.fulfill({ response, json: { ...json, data: long(list) } });
  const cursor = 'nextCursor' in json && { nextCursor: null };
  await route.fulfill({ response, json: { ...json, ...cursor, data: changed(list) } });

  function long(data: unknown): unknown {
    return changed === crowd && typeof data === 'object' && data !== null ? lengthen(data) : data;
  }
}

/** More than any page of a list has. With 300 rows the browser took 40 s more, and found nothing else. */
const ROWS = 100;
/** What people choose, at its longest and without a place to break it. */
const LONGEST: Readonly<Record<string, number>> = {
  name: 100,
  projectName: 100,
  description: 1_000,
  eventType: 128,
  uid: 128,
  externalId: 256,
  orderingKey: 256,
  url: 2_000,
};

function crowd(list: unknown[]): unknown[] {
  const [first] = list;
  if (typeof first !== 'object' || first === null) return list;
  return Array.from({ length: ROWS }, (_, n) => lengthen(idOf(list[n % list.length] as object, n)));
}

/** Rows need ids of their own, of the right form. Event types have names in place of them. */
function idOf(row: object, n: number): object {
  if ('name' in row && !('id' in row)) return { ...row, name: `${n}.${String(row.name)}` };
  if (!('id' in row) || typeof row.id !== 'string') return row;
  const end = String(n).padStart(6, '0');
  return { ...row, id: row.id.slice(0, -end.length) + end };
}

function lengthen(row: object): object {
  return Object.fromEntries(
    Object.entries(row).map(([field, value]) => {
      const length = LONGEST[field];
      if (typeof value !== 'string' || length === undefined) return [field, value];
      return [field, value.padEnd(length, 'x')];
    }),
  );
}
