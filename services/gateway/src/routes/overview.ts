import { OUTCOMES } from '@posthorn/domain/delivery/delivery.ts';
import { LAG_REASONS } from '@posthorn/domain/ingest-lag.ts';
import {
  attemptsIn,
  beginningOf,
  MAX_SPAN_MS,
  RANGES,
  successesIn,
  wholeSteps,
} from '@posthorn/domain/stats.ts';
import { z } from 'zod';
import type { Gateway } from '../gateway.ts';
import { findById, type Found, FOUND_KINDS } from '../history/find-by-id.ts';
import {
  type FailureGroup,
  failureGroups,
  type Overview,
  readOverview,
  worstOf,
  type WorstWebhook,
} from '../history/overview.ts';
import { ApiError, notFound } from '../api-error.ts';
import { route, type Route } from '../http/route.ts';
import type { NextSlice } from '../limits/slices.ts';
import { type Caller, confineToApp } from '../keys/rights.ts';
import { idField, idText, isoTime, text, timeField, timeText } from './fields.ts';
import { findOwner, refuseBoth } from './stats.ts';

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

const overviewSchema = z
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
    ingestLag: z.int().nullable().meta({
      description:
        'Records in Kafka topics of the company that are not accepted as messages yet; null without a topic, for an app or webhook, and while that is not known',
    }),
    ingestLagReason: z.enum(LAG_REASONS).nullable().meta({
      description:
        'Why the records of the partition with the most of them wait (docs/ingest.md); null without any, and while that is not known',
      example: 'rate_limited',
    }),
    latencyMs: z
      .object({ p50: milliseconds, p99: milliseconds })
      .meta({ id: 'OverviewLatency', description: 'How long the attempts took; null without any' }),
    series: z.array(seriesSchema).meta({
      description: 'Attempts by minute (`1h`), hour (`24h`, `7d`) or day (`30d`), oldest first',
    }),
    worst: z
      .array(worstSchema)
      .meta({ description: 'The ten webhooks with the most failed attempts' }),
  })
  .meta({ id: 'Overview' });

function describeOverview(overview: Overview): z.infer<typeof overviewSchema> {
  const { asOfMs, counts, latencyMs, pending, openCircuits, ingestLag, series, worst } = overview;
  const delivered = successesIn(counts);
  return {
    asOf: isoTime(asOfMs),
    accepted: counts.firstAttempts,
    delivered,
    failed: attemptsIn(counts) - delivered,
    pending: pending.count,
    oldestPendingAt: pending.oldestAtMs === null ? null : isoTime(pending.oldestAtMs),
    openCircuits,
    ingestLag: ingestLag?.records ?? null,
    ingestLagReason: ingestLag?.reason ?? null,
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

const failureGroupSchema = z
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

function describeFailureGroup({
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

const foundSchema = z
  .object({
    kind: z.enum(FOUND_KINDS),
    id: z.string().meta({ example: 'msg_01kdyx3m9e7r8s5tqv2wzcbn4a' }),
    appId: idField('app').optional(),
    messageId: idField('msg').optional(),
    deliveryId: idField('dlv').optional(),
    webhookId: idField('wh').optional(),
  })
  .meta({ id: 'Found', description: 'What has the id, and what it belongs to' });

const tag = 'Overview';
const common = { method: 'get', versionedOnly: true, scope: 'read', portal: 'view', tag } as const;

const overviewQuery = z
  .object({
    range: z
      .enum(RANGES, `must be one of ${RANGES.join(', ')}`)
      .default('24h')
      .meta({ description: 'The time up to now that is counted' }),
    appId: idText('app').optional().meta({ description: 'Only what concerns this app' }),
    webhookId: idText('wh')
      .optional()
      .meta({ description: 'Only this webhook. Not together with `appId`' }),
  })
  .superRefine(refuseBoth, { when: () => true });

const failuresQuery = z.object({
  since: timeText.optional().meta({
    description: 'Widened to a whole hour. Defaults to 24 hours ago, and is at most 31 days ago',
  }),
  appId: idText('app').optional().meta({ description: 'Only the webhooks of this app' }),
});

const findQuery = z.object({
  id: text(1, 128).meta({
    description:
      'Of a project, app, webhook, message, delivery, attempt, resend, cancellation or API key',
    example: 'msg_01kdyx3m9e7r8s5tqv2wzcbn4a',
  }),
});

/** See docs/contract.md C21. */
export function overviewRoutes(gateway: Gateway): Route[] {
  return [getOverview(gateway), listFailures(gateway), find(gateway)];
}

function getOverview(gateway: Gateway): Route {
  return route({
    operationId: 'getOverview',
    ...common,
    path: '/overview',
    summary: 'Get what happened lately at a glance',
    description:
      'Counts of attempts come from `GET /api/v1/stats`: an attempt is counted within 20 seconds while few webhooks are in use, and later with thousands of them.',
    query: overviewQuery,
    response: { status: 200, message: 'Overview found', data: overviewSchema },
    errors: ['not_found'],
    async handle({ caller, query }) {
      const ownerId = await findOwner(gateway, caller, query);
      const { companyId } = caller;
      const { range, webhookId, appId = caller.appId ?? undefined } = query;
      const asked = { companyId, ownerId, appId, webhookId, range };
      return { data: describeOverview(await readOverview(gateway, asked)) };
    },
  });
}

const MOST_WEBHOOKS = 100;
const DAY_MS = 86_400_000;

function listFailures(gateway: Gateway): Route {
  return route({
    operationId: 'listFailures',
    ...common,
    path: '/failures',
    summary: 'List the failed attempts by webhook and outcome, the most frequent first',
    description:
      'Of the 100 webhooks that failed most. The counts come from `GET /api/v1/stats`, and the times of the first and last failure are those of their hours.',
    query: failuresQuery,
    response: { status: 200, message: 'Failures found', data: z.array(failureGroupSchema) },
    errors: ['not_found'],
    async handle({ caller, query }) {
      await findOwner(gateway, caller, { appId: query.appId });
      const { companyId } = caller;
      const appId = query.appId ?? caller.appId ?? undefined;
      const span = spanSince(query.since, gateway.nowMs());
      const all = await gateway.stats.readFailing(companyId, 'hour', span);
      const filter = { companyId, appId };
      const { failing, outlines } = await worstOf(gateway.readOutlines, all, filter, MOST_WEBHOOKS);
      return { data: failureGroups(failing, outlines).map(describeFailureGroup) };
    },
  });
}

function spanSince(since: string | undefined, nowMs: number) {
  const asked = since === undefined ? nowMs - DAY_MS : Date.parse(since);
  const oldestMs = beginningOf('hour', nowMs - MAX_SPAN_MS.hour);
  return wholeSteps('hour', { fromMs: Math.min(Math.max(asked, oldestMs), nowMs), toMs: nowMs });
}

function find(gateway: Gateway): Route {
  return route({
    operationId: 'findById',
    ...common,
    path: '/find',
    summary: 'Find out what an id is of',
    query: findQuery,
    response: { status: 200, message: 'Found', data: foundSchema },
    errors: ['not_found'],
    async handle({ caller, query: { id }, nextSlice }) {
      const found = await findById(gateway, caller.companyId, id, nextSlice);
      if (!found) throw notFound('id');
      await confine(gateway, { caller, nextSlice }, found);
      return { data: found };
    },
  });
}

/** Throws ApiError 404, as for an unknown id, for what is not in the app of the caller. */
async function confine(
  gateway: Gateway,
  { caller, nextSlice }: { caller: Caller; nextSlice: NextSlice },
  found: Found,
): Promise<void> {
  const { companyId, appId, portal } = caller;
  if (appId === null) return;
  // A visitor of the portal sees neither projects nor keys.
  if (portal && (found.kind === 'project' || found.kind === 'api_key')) throw notFound('id');
  await confineToApp(gateway, { companyId, appId }, namedBy(found), nextSlice).catch(asUnknownId);
}

/** An outage stays what it is. */
function asUnknownId(error: unknown): never {
  throw error instanceof ApiError && error.status === 404 ? notFound('id') : error;
}

function namedBy({ kind, id, deliveryId }: Found) {
  switch (kind) {
    case 'project':
      return { projectId: id };
    case 'app':
      return { appId: id };
    case 'webhook':
      return { webhookId: id };
    case 'message':
      return { messageId: id };
    case 'delivery':
    case 'attempt':
      return { deliveryId };
    case 'resend':
      return { resendId: id };
    case 'cancellation':
      return { cancellationId: id };
    case 'api_key':
      return { keyId: id };
  }
}
