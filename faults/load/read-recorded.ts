import { afterSuccess } from '../audit/after-success.ts';
import { arrivalsByDelivery } from '../audit/deliveries.ts';
import type { Arrival, RecordedAttempt } from '../audit/evidence.ts';
import { readHistory, type ShownDeliveries } from './read-api.ts';

interface ReadRecorded {
  arrivals: readonly Arrival[];
  hasClockJumps: boolean;
  pause: (ms: number) => Promise<void>;
}

/** How long to wait while no delivery ends. An outcome is recorded some hundredths of a second after its response. */
const RECORDED_WITHIN_MS = 20_000;
const READ_WITHIN_MS = 180_000;
const READ_AGAIN_AFTER_MS = 1_000;
/** Requests to the API at a time. */
const READERS = 8;

/**
 * Reads each delivery again that is pending, or that may have had a request twice, until none of them is pending. Notes
 * in `shown` what it finds, and returns the recorded attempts of these deliveries.
 */
export async function readRecorded(
  deliveries: ShownDeliveries,
  { arrivals, hasClockJumps, pause }: ReadRecorded,
): Promise<Map<string, RecordedAttempt[]>> {
  const { shown } = deliveries;
  const recorded = new Map<string, RecordedAttempt[]>();
  const byKey = arrivalsByDelivery(arrivals);
  let left = [...shown].flatMap(([key, { status, attemptCount }]) => {
    const requests = byKey.get(key) ?? [];
    const attempts = hasClockJumps ? 1 : attemptCount;
    const isDoubtful = requests.length > attempts || afterSuccess(requests).length > 0;
    return status === 'pending' || isDoubtful ? [key] : [];
  });
  const endsMs = performance.now() + READ_WITHIN_MS;
  for (let [fewest, stopsMs] = [Infinity, endsMs]; left.length > 0;) {
    const read = await readAll(deliveries, left, { recorded, endsMs });
    left = left.filter((key) => !read.has(key) || shown.get(key)?.status === 'pending');
    if (left.length < fewest) {
      fewest = left.length;
      stopsMs = Math.min(endsMs, performance.now() + RECORDED_WITHIN_MS);
    }
    if (performance.now() > stopsMs) break;
    if (left.length > 0) await pause(READ_AGAIN_AFTER_MS);
  }
  return recorded;
}

/** Returns the keys of the deliveries that the API has shown. */
async function readAll(
  { shown, placeOf }: ShownDeliveries,
  keys: readonly string[],
  { recorded, endsMs }: { recorded: Map<string, RecordedAttempt[]>; endsMs: number },
): Promise<Set<string>> {
  const read = new Set<string>();
  const unread = keys.values();
  const readOn = async (): Promise<void> => {
    for (const key of unread) {
      if (performance.now() > endsMs) return;
      const place = placeOf.get(key);
      const history = place && (await readHistory(place));
      if (!history) continue;
      const { status, attemptCount, attempts } = history;
      shown.set(key, { status, attemptCount });
      recorded.set(key, attempts);
      read.add(key);
    }
  };
  await Promise.all(Array.from({ length: READERS }, readOn));
  return read;
}
