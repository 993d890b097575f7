import { queryOptions } from '@tanstack/react-query';
import { answerOf, api, dataOf } from './client.ts';

const MOST = 100;
const WEEK_MS = 604_800_000;

/** How many deliveries to a webhook a resend since a time would send again. */
export const failedSinceQuery = (webhookId: string, since: string | null) =>
  queryOptions({
    queryKey: ['failed-since', webhookId, since],
    enabled: since !== null,
    queryFn: async (): Promise<number> => {
      const params = { path: { webhookId }, query: { since: since ?? '' } };
      const counted = await dataOf(
        api.GET('/webhooks/{webhookId}/resend-failed/estimate', { params }),
      );
      return counted.total;
    },
  });

/** The gateway counts no further. */
const MOST_COUNTED = 100_000;

/** Writes how many deliveries failed. */
export function failedText(count: number): string {
  if (count >= MOST_COUNTED) return `${MOST_COUNTED} deliveries or more`;
  return `${count} ${count === 1 ? 'delivery' : 'deliveries'}`;
}

/** When the oldest message of the last week was created whose delivery to a webhook failed; null without one. */
export const firstFailureQuery = (webhookId: string) =>
  queryOptions({
    queryKey: ['first-failure', webhookId],
    staleTime: 30_000,
    queryFn: async (): Promise<string | null> => {
      const from = new Date(Date.now() - WEEK_MS).toISOString();
      const query = { webhookId, status: 'exhausted', from, limit: MOST } as const;
      const { data, nextCursor } = await answerOf(
        api.GET('/webhook-messages', { params: { query } }),
      );
      // With more than one page the beginning is not known, and a wrong one would leave deliveries out.
      return nextCursor ? null : (data.at(-1)?.createdAt ?? null);
    },
  });
