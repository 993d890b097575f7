import { queryOptions } from '@tanstack/react-query';
import { answerOf, api } from './client.ts';

const MOST = 100;
const WEEK_MS = 604_800_000;
const FAILED = ['exhausted', 'cancelled'] as const;

export interface FailedCount {
  count: number;
  /** False when there are more than were counted. */
  isAll: boolean;
}

/** How many messages since a time have a delivery to a webhook that a resend would send again; at most 200 are counted. */
export const failedSinceQuery = (webhookId: string, since: string | null) =>
  queryOptions({
    queryKey: ['failed-since', webhookId, since],
    enabled: since !== null,
    queryFn: async (): Promise<FailedCount> => {
      const pages = await Promise.all(
        FAILED.map((status) => listFailed({ webhookId, status, from: since ?? '' })),
      );
      return {
        count: pages.reduce((sum, { data }) => sum + data.length, 0),
        isAll: pages.every(({ nextCursor }) => nextCursor === null),
      };
    },
  });

/** When the oldest message of the last week was created whose delivery to a webhook failed; null without one. */
export const firstFailureQuery = (webhookId: string) =>
  queryOptions({
    queryKey: ['first-failure', webhookId],
    staleTime: 30_000,
    queryFn: async (): Promise<string | null> => {
      const from = new Date(Date.now() - WEEK_MS).toISOString();
      const { data, nextCursor } = await listFailed({ webhookId, status: 'exhausted', from });
      // With more than one page the beginning is not known, and a wrong one would leave deliveries out.
      return nextCursor ? null : (data.at(-1)?.createdAt ?? null);
    },
  });

function listFailed(query: { webhookId: string; status: (typeof FAILED)[number]; from: string }) {
  return answerOf(
    api.GET('/api/v1/webhook-messages', { params: { query: { ...query, limit: MOST } } }),
  );
}
