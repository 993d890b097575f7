import { createBatcher } from '@posthorn/platform/async/batching/batcher.ts';
import { unavailable } from '../http/api-error.ts';

/** Requests that may wait at once, with 1 kB each; further ones get 503. */
const MAX_WAITING = 1_000;
const BATCH = { maxItems: 200, lingerMs: 1, maxInFlight: 1 };

/**
 * Reads what is stored under an id for requests without an API key, which anyone can send with any id: in batches, one at
 * a time, so that a flood of them costs MongoDB little. Throws ApiError 503 when too many wait.
 */
export function createPublicRead<Value>(
  readMany: (ids: readonly string[]) => Promise<ReadonlyMap<string, Value>>,
): (id: string) => Promise<Value | undefined> {
  const batch = createBatcher<string, Value | undefined>({
    ...BATCH,
    run: async (ids) => {
      const found = await readMany([...new Set(ids)]);
      return ids.map((id) => found.get(id));
    },
  });
  return async (id) => {
    if (batch.size() >= MAX_WAITING) throw unavailable('too_many_waiting');
    return batch.add(id);
  };
}
