import { DAY_MS } from '@posthorn/domain/ids/days.ts';
import { noAttempts, type AttemptCounts } from '@posthorn/domain/stats/attempt-counts.ts';
import { HOUR_MS } from '@posthorn/domain/stats/steps.ts';
import type { StatsDocument } from '@posthorn/platform/mongo/documents/documents.ts';
import { hourId } from '@posthorn/platform/mongo/stats/stats-documents.ts';
import type { Filled, FillDeps } from './fill-days.ts';

const HOURS = DAY_MS / HOUR_MS;
const MINUTES = 60;

/** Stores counts of attempts as `fillDays` has stored them: by hour, for each webhook, the app and the company. */
export async function fillStats(
  { db, owner, signal, log }: FillDeps,
  { firstDay, days, deliveries }: Filled,
): Promise<void> {
  const { companyId, appId, webhookIds } = owner;
  const perHour = deliveries / days / HOURS;
  const owners = [
    { kind: 'company', ownerId: companyId, perHour },
    { kind: 'app', ownerId: appId, perHour },
    ...webhookIds.map((ownerId) => {
      return { kind: 'webhook', ownerId, perHour: perHour / webhookIds.length } as const;
    }),
  ] as const;
  log(`Filling the sums of ${owners.length * days * HOURS} hours`);
  for (let day = firstDay; day < firstDay + days && !signal.aborted; day += 1) {
    const documents = owners.flatMap(({ kind, ownerId, perHour: each }) =>
      Array.from({ length: HOURS }, (_, hour): StatsDocument => {
        const atMs = day * DAY_MS + hour * HOUR_MS;
        const total = countsOf(each);
        const failed = total.outcomes.http_5xx ?? 0;
        return {
          _id: hourId(ownerId, atMs),
          companyId,
          kind,
          ownerId,
          at: new Date(atMs),
          total,
          minutes: minutesOf(each / MINUTES),
          ...(kind === 'webhook' && failed > 0 && { failed }),
        };
      }),
    );
    await db.collection('stats').insertMany(documents as never, { ordered: false });
  }
}

function minutesOf(perMinute: number): Record<string, AttemptCounts> {
  const minutes = Array.from({ length: MINUTES }, (_, minute) => [minute, countsOf(perMinute)]);
  return Object.fromEntries(minutes) as Record<string, AttemptCounts>;
}

/** One of 50 attempts failed; they took 50 to 100 ms. */
function countsOf(attempts: number): AttemptCounts {
  const count = Math.max(1, Math.round(attempts));
  const failed = Math.round(count / 50);
  return {
    ...noAttempts(),
    outcomes: { success: count - failed, ...(failed > 0 && { http_5xx: failed }) },
    firstAttempts: count,
    payloadBytes: count * 830,
    durationMs: count * 75,
    maxDurationMs: 100,
    durations: { 6: count },
  };
}
