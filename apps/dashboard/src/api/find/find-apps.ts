import { queryOptions, keepPreviousData } from '@tanstack/react-query';
import { answerOf, api, type Schemas } from '../client.ts';
import { given } from '../queries.ts';
import { withoutMark } from './find.ts';

export type FoundApp = Schemas['FoundApp'];

const FRESH_MS = 30_000;

export interface FoundApps {
  apps: FoundApp[];
  /** There may be more that match. */
  isMore: boolean;
}

/** The first apps of any project whose name has this text in it, or whose uid it is. */
export const findAppsQuery = (text: string) =>
  queryOptions({
    queryKey: ['apps', 'found', text],
    staleTime: FRESH_MS,
    placeholderData: keepPreviousData,
    queryFn: async (): Promise<FoundApps> => {
      const query = given({ text: withoutMark(text) });
      const { data, nextCursor } = await answerOf(api.GET('/find-apps', { params: { query } }));
      return { apps: data, isMore: nextCursor !== null };
    },
  });

/** One app with its project. */
export const foundAppQuery = (appId: string) =>
  queryOptions({
    queryKey: ['apps', 'one', appId],
    staleTime: FRESH_MS,
    enabled: appId !== '',
    queryFn: async (): Promise<FoundApp | null> => {
      const query = { text: appId, limit: 1 };
      const { data } = await answerOf(api.GET('/find-apps', { params: { query } }));
      return data[0] ?? null;
    },
  });
