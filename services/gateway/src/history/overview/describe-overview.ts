import { OUTCOMES } from '@posthorn/domain/outcome.ts';
import { attemptsIn, successesIn } from '@posthorn/domain/stats/attempt-counts.ts';
import { z } from 'zod';
import type { FailureGroup } from './failure-groups.ts';
import { FOUND_KINDS } from './find-by-id.ts';
import type { Overview, WorstWebhook } from './read-overview.ts';
import { idField, isoTime, timeField } from '../../http/responses/fields.ts';

const milliseconds = z.int().nullable();

const worstSchema = z
  .object({
    webhookId: idField('wh'),
    url: z.string(),
    appId: idField('app').nullable().meta({ description: 'Null for a global webhook' }),
    successRatio: z.number().meta({ description: 'Of its attempts in the range, from 0 to 1' }),
    failed: z.int(),
    reason: z.enum(OUTCOMES).meta({
      description: 'The outcome of most of its failed attempts',
      example: 'timeout',
    }),
    since: timeField.meta({
      description: 'The beginning of the first minute or hour of the range with a failure',
    }),
  })
  .meta({ id: 'WorstWebhook' });

const seriesSchema = z
  .object({ at: timeField, delivered: z.int(), failed: z.int() })
  .meta({ id: 'OverviewPoint' });

export const overviewSchema = z
  .object({
    asOf: timeField,
    accepted: z.int().meta({
      description: 'Deliveries of accepted messages whose first attempt was made in the range',
    }),
    delivered: z.int().meta({ description: 'Attempts that succeeded' }),
    failed: z.int().meta({ description: 'Attempts that failed' }),
    pending: z.int().meta({
      description:
        'Deliveries that wait for another attempt now. At most 10,000 are counted, and of an app those of its 200 oldest webhooks',
    }),
    oldestPendingAt: timeField.nullable().meta({
      description: 'When the message of the oldest of them was accepted; null without any',
    }),
    openCircuits: z.int().nullable().meta({
      description:
        'Webhooks whose circuit is open now (`GET /api/v1/circuits`), at most 10,000; null while that is not known',
    }),
    latencyMs: z
      .object({ p50: milliseconds, p99: milliseconds })
      .meta({ description: 'How long the attempts took; null without any' }),
    series: z.array(seriesSchema).meta({
      description: 'Attempts by minute (`1h`), hour (`24h`, `7d`) or day (`30d`), oldest first',
    }),
    worst: z
      .array(worstSchema)
      .meta({ description: 'The ten webhooks with the most failed attempts' }),
  })
  .meta({ id: 'Overview' });

export function describeOverview(overview: Overview): z.infer<typeof overviewSchema> {
  const { asOfMs, counts, latencyMs, pending, openCircuits, series, worst } = overview;
  const delivered = successesIn(counts);
  return {
    asOf: isoTime(asOfMs),
    accepted: counts.firstAttempts,
    delivered,
    failed: attemptsIn(counts) - delivered,
    pending: pending.count,
    oldestPendingAt: pending.oldestAtMs === null ? null : isoTime(pending.oldestAtMs),
    openCircuits,
    latencyMs: { p50: latencyMs?.p50 ?? null, p99: latencyMs?.p99 ?? null },
    series: series.map(({ atMs, ...counted }) => ({ at: isoTime(atMs), ...counted })),
    worst: worst.map(describeWorst),
  };
}

function describeWorst(worst: WorstWebhook): z.infer<typeof worstSchema> {
  const { webhook, successRatio, failed, reason, sinceMs } = worst;
  const { id: webhookId, url, appId } = webhook;
  const rounded = Math.round(successRatio * 1_000) / 1_000;
  return {
    webhookId,
    url,
    appId,
    successRatio: rounded,
    failed,
    reason,
    since: isoTime(sinceMs),
  };
}

export const failureGroupSchema = z
  .object({
    webhookId: idField('wh'),
    url: z.string(),
    appId: idField('app').nullable().meta({ description: 'Null for a global webhook' }),
    outcome: z.enum(OUTCOMES).meta({ example: 'http_5xx' }),
    count: z.int(),
    firstAt: timeField.meta({ description: 'The beginning of the hour of the first one' }),
    lastAt: timeField.meta({ description: 'The beginning of the hour of the last one' }),
  })
  .meta({ id: 'FailureGroup' });

export function describeFailureGroup({
  webhook,
  outcome,
  count,
  firstMs,
  lastMs,
}: FailureGroup): z.infer<typeof failureGroupSchema> {
  const { id: webhookId, url, appId } = webhook;
  const times = { firstAt: isoTime(firstMs), lastAt: isoTime(lastMs) };
  return { webhookId, url, appId, outcome, count, ...times };
}

export const foundSchema = z
  .object({
    kind: z.enum(FOUND_KINDS),
    id: z.string().meta({ example: 'msg_01kdyx3m9e7r8s5tqv2wzcbn4a' }),
    appId: idField('app').optional(),
    messageId: idField('msg').optional(),
    deliveryId: idField('dlv').optional(),
    webhookId: idField('wh').optional(),
  })
  .meta({ id: 'Found', description: 'What has the id, and what it belongs to' });
