import { OUTCOMES } from '@posthorn/domain/outcome.ts';
import { attemptsIn, successesIn } from '@posthorn/domain/stats/attempt-counts.ts';
import { durationFiguresOf } from '@posthorn/domain/stats/durations.ts';
import { STEPS } from '@posthorn/domain/stats/steps.ts';
import type { StatsPoint } from '@posthorn/platform/mongo/stats/stats-queries.ts';
import { z } from 'zod';
import { isoTime, timeField } from './fields.ts';

const pointSchema = z
  .object({
    at: timeField.meta({ description: 'The beginning of the minute, hour or day, in UTC' }),
    attempts: z.int(),
    succeeded: z.int(),
    failed: z.int(),
    outcomes: z.partialRecord(z.enum(OUTCOMES), z.int()).meta({
      description: 'Attempts by outcome; those that did not happen are left out',
      example: { success: 118, http_5xx: 2 },
    }),
    firstAttempts: z.int().meta({ description: 'Attempts that were the first of their delivery' }),
    payloadBytes: z.int().meta({ description: 'Bytes of the payloads that were sent' }),
    latencyMs: z
      .object({ mean: z.int(), max: z.int(), p50: z.int(), p95: z.int(), p99: z.int() })
      .meta({
        description:
          'How long the attempts took. Percentiles are estimates within the steps 1, 2, 5, 10 … 60,000 ms',
      }),
  })
  .meta({ id: 'StatsPoint' });

export const statsSchema = z
  .object({
    step: z.enum(STEPS),
    from: timeField.meta({ description: 'The beginning of the first step that was searched' }),
    to: timeField.meta({ description: 'The end of the last one' }),
    points: z.array(pointSchema).meta({ description: 'Oldest first' }),
  })
  .meta({ id: 'Stats' });

export function describePoint({ atMs, counts }: StatsPoint): z.infer<typeof pointSchema> {
  const attempts = attemptsIn(counts);
  const succeeded = successesIn(counts);
  const { outcomes, firstAttempts, payloadBytes } = counts;
  return {
    at: isoTime(atMs),
    attempts,
    succeeded,
    failed: attempts - succeeded,
    outcomes,
    firstAttempts,
    payloadBytes,
    latencyMs: durationFiguresOf(counts) ?? NONE,
  };
}

/** Never seen: a point has an attempt. */
const NONE = { mean: 0, max: 0, p50: 0, p95: 0, p99: 0 };
