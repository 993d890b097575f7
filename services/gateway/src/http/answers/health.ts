import { z } from 'zod';
import { timeField } from './fields.ts';

export const health = z
  .object({
    circuit: z.enum(['closed', 'open', 'half_open']).meta({
      description:
        'open: so many attempts failed that the next ones are deferred; half_open: one attempt finds out whether the endpoint is well again',
    }),
    successRate: z
      .number()
      .min(0)
      .max(1)
      .nullable()
      .meta({ description: 'Of the attempts looked at; null when there were none' }),
    latencyMs: z
      .object({ p50: z.number().nullable(), p95: z.number().nullable() })
      .meta({ description: 'Of the attempts looked at; null when there were none' }),
    concurrency: z.object({ now: z.int(), floor: z.int(), ceiling: z.int() }).meta({
      description:
        'Attempts that the endpoint may have at once: it grows while attempts wait and the endpoint answers well, and shrinks on 429, 503, timeouts and rising latency',
    }),
    ratePerSecond: z.number().nullable().meta({
      description:
        'Attempts per second that the dispatcher keeps to: the limit of the webhook, or what its answers of 429 let through; null for no bound, and where nothing was sent in the last minutes',
    }),
    heldUntil: timeField.nullable().meta({
      description:
        'Nothing is sent before: the endpoint asked for a pause (Retry-After); null when it did not',
    }),
    backlog: z.int().meta({ description: 'Deliveries that wait; counted up to 10,000' }),
  })
  .meta({ id: 'WebhookHealth' });

export type Health = z.infer<typeof health>;
