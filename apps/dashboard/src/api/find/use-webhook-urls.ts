import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { webhooksOfQuery, type FoundWebhook } from './find-webhooks.ts';

const PER_REQUEST = 100;
const NONE: ReadonlyMap<string, FoundWebhook | null> = new Map();

/**
 * The URLs of the webhooks of these ids, by id, without those that are not known yet or were deleted. What is known
 * stays while others are asked for.
 */
export function useWebhookUrls(ids: readonly string[]): ReadonlyMap<string, string> {
  const [known, setKnown] = useState(NONE);
  const unknown = [...new Set(ids)].filter((id) => !known.has(id)).slice(0, PER_REQUEST);
  const { data } = useQuery(webhooksOfQuery(unknown));
  if (data !== undefined && [...data.keys()].some((id) => !known.has(id))) {
    setKnown(new Map([...known, ...data]));
  }
  return new Map([...known].flatMap(([id, found]) => (found === null ? [] : [[id, found.url]])));
}
