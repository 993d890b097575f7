import { useQueries } from '@tanstack/react-query';
import { webhooksOfQuery } from './find-webhooks.ts';

const PER_REQUEST = 100;

/** The URLs of the webhooks of these ids, by id, without those that are not known yet or were deleted. */
export function useWebhookUrls(ids: readonly string[]): ReadonlyMap<string, string> {
  const distinct = [...new Set(ids)];
  const chunks = [];
  for (let from = 0; from < distinct.length; from += PER_REQUEST) {
    chunks.push(distinct.slice(from, from + PER_REQUEST));
  }
  const found = useQueries({ queries: chunks.map((chunk) => webhooksOfQuery(chunk)) });
  return new Map(found.flatMap(({ data = [] }) => data).map(({ id, url }) => [id, url]));
}
