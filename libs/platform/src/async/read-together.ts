import { createBatcher } from './batcher.ts';

/** A read takes the store about as long as 20 of them, so a look-up may wait a moment for others. */
const READS = { maxItems: 500, lingerMs: 1, maxInFlight: 2 };

/**
 * Returns a function that looks one key up: keys that are asked for at about the same time are read together, at most 500.
 * It resolves to undefined for a key that the read does not return, and rejects with what the read throws.
 */
export function createReadTogether<Found>(
  readMany: (keys: ReadonlySet<string>) => Promise<ReadonlyMap<string, Found>>,
  bounds: Partial<typeof READS> = {},
): (key: string) => Promise<Found | undefined> {
  const batch = createBatcher<string, Found | undefined>({
    ...READS,
    ...bounds,
    run: async (keys) => {
      const found = await readMany(new Set(keys));
      return keys.map((key) => found.get(key));
    },
  });
  return batch.add;
}
