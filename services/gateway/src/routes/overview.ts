import { beginningOf, MAX_SPAN_MS, RANGES, wholeSteps } from '@posthorn/domain/stats.ts';
import type { StatsQueries } from '@posthorn/platform/mongo/messages/stats-queries.ts';
import { z } from 'zod';
import type { FindById, Found } from '../history/find-by-id.ts';
import {
  describeFailureGroup,
  describeOverview,
  failureGroups,
  failureGroupSchema,
  foundSchema,
  overviewSchema,
  type ReadOverview,
  type ReadWebhookOutlines,
  worstOf,
} from '../history/overview.ts';
import { ApiError, notFound } from '../api-error.ts';
import { type Caller, route, type Route } from '../http/route.ts';
import type { TakeTurn } from '../limits/turns.ts';
import type { ConfineToApp } from '../keys/rights.ts';
import { idText, text, timeText } from './fields.ts';
import { findOwner, type OwnerDeps, refuseBoth } from './stats.ts';

export interface OverviewDeps extends OwnerDeps {
  stats: Pick<StatsQueries, 'readFailing'>;
  readOverview: ReadOverview;
  readOutlines: ReadWebhookOutlines;
  findById: FindById;
  confineToApp: ConfineToApp;
  nowMs: () => number;
}

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
    description: 'Of a project, app, webhook, message, delivery, attempt, resend or API key',
    example: 'msg_01kdyx3m9e7r8s5tqv2wzcbn4a',
  }),
});

/** See docs/contract.md C21. */
export function overviewRoutes(deps: OverviewDeps): Route[] {
  return [getOverview(deps), listFailures(deps), find(deps)];
}

function getOverview(deps: OverviewDeps): Route {
  return route({
    ...common,
    path: '/overview',
    summary: 'Get what happened lately at a glance',
    description:
      'Counts of attempts come from `GET /api/v1/stats`: an attempt is counted after about five seconds, at most 45.',
    query: overviewQuery,
    response: { status: 200, message: 'Overview found', data: overviewSchema },
    errors: ['not_found'],
    async handle({ caller, query }) {
      const ownerId = await findOwner(deps, caller, query);
      const { companyId } = caller;
      const { range, webhookId, appId = caller.appId ?? undefined } = query;
      const asked = { companyId, ownerId, appId, webhookId, range };
      return { data: describeOverview(await deps.readOverview(asked)) };
    },
  });
}

const MOST_WEBHOOKS = 100;
const DAY_MS = 86_400_000;

function listFailures(deps: OverviewDeps): Route {
  return route({
    ...common,
    path: '/failures',
    summary: 'List the failed attempts by webhook and outcome, the most frequent first',
    description:
      'Of the 100 webhooks that failed most. The counts come from `GET /api/v1/stats`, and the times of the first and last failure are those of their hours.',
    query: failuresQuery,
    response: { status: 200, message: 'Failures found', data: z.array(failureGroupSchema) },
    errors: ['not_found'],
    async handle({ caller, query }) {
      await findOwner(deps, caller, { appId: query.appId });
      const { companyId } = caller;
      const appId = query.appId ?? caller.appId ?? undefined;
      const span = spanSince(query.since, deps.nowMs());
      const all = await deps.stats.readFailing(companyId, 'hour', span);
      const filter = { companyId, appId };
      const { failing, outlines } = await worstOf(deps.readOutlines, all, filter, MOST_WEBHOOKS);
      return { data: failureGroups(failing, outlines).map(describeFailureGroup) };
    },
  });
}

function spanSince(since: string | undefined, nowMs: number) {
  const asked = since === undefined ? nowMs - DAY_MS : Date.parse(since);
  const oldestMs = beginningOf('hour', nowMs - MAX_SPAN_MS.hour);
  return wholeSteps('hour', { fromMs: Math.min(Math.max(asked, oldestMs), nowMs), toMs: nowMs });
}

function find(deps: OverviewDeps): Route {
  return route({
    ...common,
    path: '/find',
    summary: 'Find out what an id is of',
    query: findQuery,
    response: { status: 200, message: 'Found', data: foundSchema },
    errors: ['not_found'],
    async handle({ caller, query: { id }, takeTurn }) {
      const found = await deps.findById(caller.companyId, id, takeTurn);
      if (!found) throw notFound('id');
      await confine(deps, { caller, takeTurn }, found);
      return { data: found };
    },
  });
}

/** Throws ApiError 404, as for an unknown id, for what is not in the app of the caller. */
async function confine(
  { confineToApp }: OverviewDeps,
  { caller, takeTurn }: { caller: Caller; takeTurn: TakeTurn },
  found: Found,
): Promise<void> {
  const { companyId, appId, portal } = caller;
  if (appId === null) return;
  // A visitor of the portal sees neither projects nor keys.
  if (portal && (found.kind === 'project' || found.kind === 'api_key')) throw notFound('id');
  await confineToApp({ companyId, appId }, namedBy(found), takeTurn).catch(asUnknownId);
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
    case 'api_key':
      return { keyId: id };
  }
}
