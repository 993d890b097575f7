import { OUTCOMES } from '@posthorn/domain/delivery/delivery.ts';
import {
  attemptsIn,
  beginningOf,
  DEFAULT_SPAN_MS,
  durationFiguresOf,
  MAX_SPAN_MS,
  type Span,
  type Step,
  STEPS,
  successesIn,
  wholeSteps,
} from '@posthorn/domain/stats.ts';
import type { StatsPoint } from '@posthorn/platform/mongo/messages/stats-queries.ts';
import { z } from 'zod';
import type { Gateway } from '../gateway.ts';
import { type CircuitOfWebhook, readCircuits } from '../history/counts.ts';
import { notFound } from '../api-error.ts';
import { route, type Route } from '../http/route.ts';
import type { Caller } from '../keys/rights.ts';
import { exampleId, idField, idText, isoTime, timeField, timeText } from './fields.ts';

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
        id: 'StatsLatency',
        description:
          'How long the attempts took. Percentiles are estimates within the steps 1, 2, 5, 10 … 60,000 ms',
      }),
  })
  .meta({ id: 'StatsPoint' });

const statsSchema = z
  .object({
    step: z.enum(STEPS),
    from: timeField.meta({ description: 'The beginning of the first step that was searched' }),
    to: timeField.meta({ description: 'The end of the last one' }),
    points: z.array(pointSchema).meta({ description: 'Oldest first' }),
  })
  .meta({ id: 'Stats' });

function describePoint({ atMs, counts }: StatsPoint): z.infer<typeof pointSchema> {
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

interface AskedOwner {
  webhookId?: string | undefined;
  appId?: string | undefined;
}

/** A webhook is of one app already. */
export function refuseBoth({ webhookId, appId }: AskedOwner, context: z.RefinementCtx): void {
  if (webhookId === undefined || appId === undefined) return;
  context.addIssue({ code: 'custom', path: ['appId'], message: 'excludes webhookId' });
}

/**
 * Returns the id of the webhook, the app or the company whose attempts are asked for. Throws ApiError 404 for an
 * unknown one.
 */
export async function findOwner(
  { webhooks, apps }: Gateway,
  { companyId, appId: onlyAppId }: Caller,
  { webhookId, appId = onlyAppId ?? undefined }: AskedOwner,
): Promise<string> {
  if (webhookId !== undefined) {
    if (!(await webhooks.has(companyId, webhookId))) throw notFound('webhook');
    return webhookId;
  }
  if (appId === undefined) return companyId;
  if (!(await apps.has(companyId, appId))) throw notFound('app');
  return appId;
}

const query = z
  .object({
    step: z
      .enum(STEPS, `must be one of ${STEPS.join(', ')}`)
      .default('hour')
      .meta({ description: 'What one point stands for' }),
    since: timeText.optional().meta({
      description: 'Defaults to 60 minutes, 24 hours or 30 days before `until`, by `step`',
    }),
    until: timeText
      .optional()
      .meta({ description: 'Not included. Defaults to the time of the request' }),
    webhookId: idText('wh').optional().meta({ description: 'Only attempts to this webhook' }),
    appId: idText('app')
      .optional()
      .meta({
        description: 'Only attempts to the webhooks of this app. Not together with `webhookId`',
        example: exampleId('app'),
      }),
  })
  .superRefine(
    (asked, context) => {
      refuseBoth(asked, context);
      const { since, until } = asked;
      if (typeof since !== 'string' || typeof until !== 'string') return;
      if (Date.parse(until) >= Date.parse(since)) return;
      context.addIssue({ code: 'custom', path: ['until'], message: 'must not be before since' });
    },
    // Runs even if another parameter is wrong: one response reports every problem.
    { when: () => true },
  );

/** See docs/contract.md C18. */
export function statsRoutes(gateway: Gateway): Route[] {
  return [
    route({
      operationId: 'getStats',
      method: 'get',
      path: '/stats',
      versionedOnly: true,
      scope: 'read',
      portal: 'view',
      tag: 'Statistics',
      summary: 'Get counts of attempts over time',
      description:
        'Attempts that ended in each minute, hour or day (UTC), by outcome, with how long they took. Points without an attempt are left out. At most 1,440 minutes, 744 hours or 31 days at once. An attempt is counted within 20 seconds while few webhooks are in use, and later with thousands of them.',
      query,
      response: { status: 200, message: 'Statistics found', data: statsSchema },
      errors: ['not_found'],
      async handle({ caller, query: asked }) {
        const { step } = asked;
        const span = spanOf(step, asked, gateway.nowMs());
        const ownerId = await findOwner(gateway, caller, asked);
        const points = await gateway.stats.readSteps(
          { companyId: caller.companyId, ownerId },
          step,
          span,
        );
        const { fromMs, toMs } = span;
        const shown = points.map(describePoint);
        return { data: { step, from: isoTime(fromMs), to: isoTime(toMs), points: shown } };
      },
    }),
  ];
}

/** A span that is longer than one response may be is cut at its beginning: the newest points are shown. */
function spanOf(
  step: Step,
  { since, until }: { since?: string | undefined; until?: string | undefined },
  nowMs: number,
): Span {
  const toMs = countable(until === undefined ? nowMs : Date.parse(until));
  const fromMs = countable(since === undefined ? toMs - DEFAULT_SPAN_MS[step] : Date.parse(since));
  const span = wholeSteps(step, { fromMs, toMs });
  return {
    ...span,
    fromMs: Math.max(span.fromMs, beginningOf(step, span.toMs - MAX_SPAN_MS[step])),
  };
}

/** No attempt was before 1970, and steps around the year 10000 have no time of four digits. */
const LAST_MS = Date.UTC(9999, 11, 30);
const countable = (ms: number): number => Math.min(Math.max(ms, 0), LAST_MS);

const listQuery = z.object({
  appId: idText('app').optional().meta({ description: 'Only the webhooks of this app' }),
});

const circuitSchema = z
  .object({
    webhookId: idField('wh'),
    url: z.string(),
    appId: idField('app').nullable().meta({ description: 'Null for a global webhook' }),
    circuit: z.enum(['open', 'half_open']).meta({
      description: '`half_open`: the next attempt decides whether it closes',
    }),
    since: timeField.meta({ description: 'When it opened, without a success since' }),
    probeAt: timeField.meta({ description: 'When the next attempt may be made' }),
  })
  .meta({ id: 'OpenCircuit' });

const MOST = 1_000;

/** See docs/contract.md C21.6. */
export function circuitRoutes(gateway: Gateway): Route[] {
  return [
    route({
      operationId: 'listCircuits',
      method: 'get',
      path: '/circuits',
      versionedOnly: true,
      scope: 'read',
      portal: 'view',
      tag: 'Overview',
      summary: 'List the open circuits, the oldest first',
      description:
        'While the circuit of a webhook is open, its endpoint gets one attempt now and then, and the others are deferred. Returns at most 1,000. While Redis is away they are not known: 503.',
      query: listQuery,
      response: { status: 200, message: 'Circuits found', data: z.array(circuitSchema) },
      errors: ['not_found'],
      async handle({ caller, query }) {
        await findOwner(gateway, caller, query);
        const appId = query.appId ?? caller.appId ?? undefined;
        const found = await readCircuits(gateway, caller.companyId, { appId });
        const nowMs = gateway.nowMs();
        return { data: found.slice(0, MOST).map((each) => describeCircuit(each, nowMs)) };
      },
    }),
  ];
}

function describeCircuit(
  { webhook, probeAtMs, sinceMs }: CircuitOfWebhook,
  nowMs: number,
): z.infer<typeof circuitSchema> {
  const { id: webhookId, url, appId } = webhook;
  return {
    webhookId,
    url,
    appId,
    circuit: probeAtMs > nowMs ? 'open' : 'half_open',
    since: isoTime(sinceMs),
    probeAt: isoTime(probeAtMs),
  };
}
