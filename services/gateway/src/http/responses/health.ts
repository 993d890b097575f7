import { z } from 'zod';
import { timeField } from './fields.ts';

export const healthSchema = z
  .object({
    circuit: z.enum(['closed', 'open', 'half_open']).meta({
      description:
        '`open`: attempts kept failing, and further ones are deferred. `half_open`: one attempt finds out whether the endpoint has recovered',
    }),
    probeAt: timeField.nullable().meta({
      description:
        'When the next attempt finds out whether the endpoint has recovered; null while the circuit is closed',
    }),
    lastAttemptAt: timeField.nullable().meta({
      description: 'When the newest of the examined attempts began; null without attempts',
    }),
    successRate: z.number().min(0).max(1).nullable().meta({
      description: 'Share of the examined attempts that succeeded; null without attempts',
    }),
    latencyMs: z
      .object({ p50: z.number().nullable(), p95: z.number().nullable() })
      .meta({ description: 'Duration of the examined attempts; null without attempts' }),
    concurrency: z.object({ now: z.int(), floor: z.int(), ceiling: z.int() }).meta({
      description:
        'Attempts that may run at once. The limit grows while attempts wait and the endpoint responds well; it shrinks on 429, 503, timeouts and rising latency',
    }),
    ratePerSecond: z.number().nullable().meta({
      description:
        'Most attempts per second: the limit of the webhook, or the rate learned from its 429 responses. Null when there is no limit, and when nothing was sent in the last minutes',
    }),
    heldUntil: timeField.nullable().meta({
      description:
        'Nothing is sent before this time: the endpoint asked for a pause with `Retry-After`. Null without a pause',
    }),
    backlog: z.int().meta({ description: 'Number of pending deliveries; counted up to 10,000' }),
  })
  .meta({ id: 'WebhookHealth' });

export type Health = z.infer<typeof healthSchema>;
