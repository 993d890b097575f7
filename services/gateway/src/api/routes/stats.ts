import {
  beginningOf,
  DEFAULT_SPAN_MS,
  MAX_SPAN_MS,
  STEPS,
  wholeSteps,
  type Span,
  type Step,
} from '@posthorn/domain/stats/steps.ts';
import type { StatsQueries } from '@posthorn/platform/mongo/stats/stats-queries.ts';
import { z } from 'zod';
import { route, type Route } from '../../http/request/route.ts';
import { exampleId, isoTime } from '../../http/responses/fields.ts';
import { describePoint, statsSchema } from '../../http/responses/stats.ts';
import { idText, timeText } from './fields.ts';
import { findOwner, refuseBoth, type OwnerDeps } from './stats-owner.ts';

export interface StatsDeps extends OwnerDeps {
  stats: Pick<StatsQueries, 'readSteps'>;
  nowMs: () => number;
}

const query = z
  .object({
    step: z
      .enum(STEPS, `must be one of ${STEPS.join(', ')}`)
      .default('hour')
      .meta({ description: 'What one point stands for' }),
    from: timeText.optional().meta({
      description: 'Defaults to 60 minutes, 24 hours or 30 days before `to`, by `step`',
    }),
    to: timeText
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
      const { from, to } = asked;
      if (typeof from !== 'string' || typeof to !== 'string') return;
      if (Date.parse(to) >= Date.parse(from)) return;
      context.addIssue({ code: 'custom', path: ['to'], message: 'must not be before from' });
    },
    // Runs even if another parameter is wrong: one response reports every problem.
    { when: () => true },
  );

/** See docs/contract.md C18. */
export function statsRoutes(deps: StatsDeps): Route[] {
  return [
    route({
      method: 'get',
      path: '/stats',
      versionedOnly: true,
      scope: 'read',
      portal: 'view',
      tag: 'Statistics',
      summary: 'Get counts of attempts over time',
      description:
        'Attempts that ended in each minute, hour or day (UTC), by outcome, with how long they took. Points without an attempt are left out. At most 1,440 minutes, 744 hours or 31 days at once. An attempt is counted after about five seconds, at most 45.',
      query,
      response: { status: 200, message: 'Statistics found', data: statsSchema },
      errors: ['not_found'],
      async handle({ caller, query: asked }) {
        const { step } = asked;
        const span = spanOf(step, asked, deps.nowMs());
        const ownerId = await findOwner(deps, caller, asked);
        const points = await deps.stats.readSteps(
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
  { from, to }: { from?: string | undefined; to?: string | undefined },
  nowMs: number,
): Span {
  const toMs = countable(to === undefined ? nowMs : Date.parse(to));
  const fromMs = countable(from === undefined ? toMs - DEFAULT_SPAN_MS[step] : Date.parse(from));
  const span = wholeSteps(step, { fromMs, toMs });
  return {
    ...span,
    fromMs: Math.max(span.fromMs, beginningOf(step, span.toMs - MAX_SPAN_MS[step])),
  };
}

/** No attempt was before 1970, and steps around the year 10000 have no time of four digits. */
const LAST_MS = Date.UTC(9999, 11, 30);
const countable = (ms: number): number => Math.min(Math.max(ms, 0), LAST_MS);
