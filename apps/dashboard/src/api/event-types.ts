import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { answerOf, api, dataOf, given, type Schemas } from './client.ts';
import { FRESH_MS } from './query-client.ts';

export type EventType = Schemas['EventType'];
export type ListedEventType = Schemas['ListedEventType'];

/** Whose catalogue: that of a project, or of the project of an app, without what is archived. */
export type CatalogueOf = { projectId: string } | { appId: string };

/** More than a project may have. Lists are without schemas and examples. */
const MOST_EVENT_TYPES = 2_000;
const PER_REQUEST = 1_000;

/** All event types, by name. */
export const catalogueQuery = (of: CatalogueOf | null) =>
  queryOptions({
    queryKey: ['event-types', of],
    staleTime: FRESH_MS,
    enabled: of !== null,
    queryFn: async (): Promise<ListedEventType[]> => {
      const all: ListedEventType[] = [];
      for (let skip = 0; of !== null && skip < MOST_EVENT_TYPES; skip += PER_REQUEST) {
        const page = await readPage(of, { limit: PER_REQUEST, skip });
        all.push(...page);
        if (page.length < PER_REQUEST) break;
      }
      return all;
    },
  });

function readPage(
  of: CatalogueOf,
  query: { limit: number; skip: number },
): Promise<ListedEventType[]> {
  return 'projectId' in of
    ? dataOf(api.GET('/projects/{projectId}/event-types', { params: { path: of, query } }))
    : dataOf(api.GET('/apps/{appId}/event-types', { params: { path: of, query } }));
}

/** One event type. `version`: with an earlier schema. */
export const eventTypeQuery = (of: CatalogueOf, eventTypeName: string, version?: number) =>
  queryOptions({
    queryKey: ['event-types', of, eventTypeName, version],
    staleTime: FRESH_MS,
    placeholderData: keepPreviousData,
    queryFn: (): Promise<EventType> => readOne(of, eventTypeName, version),
  });

/** Its newest version, for a button. */
export function readOne(
  of: CatalogueOf,
  eventTypeName: string,
  version?: number,
): Promise<EventType> {
  const query = given({ version });
  if ('projectId' in of) {
    const path = { ...of, eventTypeName };
    const address = '/projects/{projectId}/event-types/{eventTypeName}';
    return dataOf(api.GET(address, { params: { path, query } }));
  }
  // An app's customers see what is sent now.
  const path = { ...of, eventTypeName };
  return dataOf(api.GET('/apps/{appId}/event-types/{eventTypeName}', { params: { path } }));
}

export function importEventTypes(
  projectId: string,
  body: Schemas['ImportEventTypes'],
): Promise<Schemas['ImportedEventTypes']> {
  const params = { path: { projectId } };
  return dataOf(api.POST('/projects/{projectId}/import-event-types', { params, body }));
}

export function setPolicy(
  projectId: string,
  eventTypePolicy: Schemas['Project']['eventTypePolicy'],
): Promise<unknown> {
  const params = { path: { projectId } };
  return answerOf(api.PUT('/projects/{projectId}', { params, body: { eventTypePolicy } }));
}
