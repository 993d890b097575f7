import { z } from 'zod';

export const health = z
  .object({
    circuit: z.enum(['closed', 'open', 'half_open']).meta({
      description:
        'open: so many attempts failed that the next ones are put off; half_open: one attempt finds out whether the endpoint is well again',
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
    backlog: z.int().meta({ description: 'Deliveries that wait; counted up to 10,000' }),
  })
  .meta({ id: 'WebhookHealth' });

export type Health = z.infer<typeof health>;
