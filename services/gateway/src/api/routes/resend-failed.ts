import { z } from 'zod';
import { describeResend, resend } from '../../http/answers/resend.ts';
import { route, type Route } from '../../http/route.ts';
import type { FailedSpan, StartResend } from '../../resend/start-resend.ts';
import { timeText } from './fields.ts';

export interface ResendFailedDeps {
  startResend: StartResend;
}

const resendBody = z
  .object({
    since: timeText,
    until: timeText.optional().meta({ description: 'Not before `since`; now, when left out' }),
  })
  .superRefine(
    ({ since, until }, context) => {
      if (typeof until !== 'string' || typeof since !== 'string') return;
      if (!(Date.parse(until) < Date.parse(since))) return;
      context.addIssue({ code: 'custom', path: ['until'], message: 'must not be before since' });
    },
    // Also when another field is wrong: all problems are told at once.
    { when: () => true },
  )
  .meta({ id: 'ResendFailed' });

const versionedOnly = true;
const answer = { status: 202, message: 'Resend started', data: resend } as const;

/** What failed in a span of time, sent again behind the answer. */
export function resendFailedRoutes({ startResend }: ResendFailedDeps): Route[] {
  return [
    route({
      method: 'post',
      path: '/webhooks/:webhookId/resend-failed',
      versionedOnly,
      tag: 'Webhooks',
      summary: 'Send all failed deliveries of a webhook again',
      description:
        'Each exhausted or cancelled delivery created from `since` to `until` gets one attempt, in the background, oldest first. Progress is at `GET /api/v1/resends/{id}`.',
      body: resendBody,
      answer,
      errors: ['not_found', 'webhook_disabled'],
      async handle({ caller: { companyId }, params: { webhookId = '' }, body: { value } }) {
        const span = { companyId, ...spanOf(value) };
        return { data: describeResend(await startResend.failed({ ...span, webhookId })) };
      },
    }),
    route({
      method: 'post',
      path: '/apps/:appId/resend-failed',
      versionedOnly,
      tag: 'Apps',
      summary: 'Send all failed deliveries of an app again',
      description:
        'Each exhausted or cancelled delivery to a webhook of the app, created from `since` to `until`, gets one attempt, in the background; several webhooks at a time, each oldest first. Disabled webhooks are left out. An endpoint that has kept failing for five minutes is given up: what it has not got counts as `failed` and keeps its status. Progress is at `GET /api/v1/resends/{id}`; only one runs at a time for an app.',
      body: resendBody,
      answer,
      errors: ['not_found', 'resend_running'],
      async handle({ caller: { companyId }, params: { appId = '' }, body: { value } }) {
        const span = { companyId, ...spanOf(value) };
        return { data: describeResend(await startResend.failedOfApp({ ...span, appId })) };
      },
    }),
  ];
}

function spanOf({ since, until }: z.infer<typeof resendBody>): Omit<FailedSpan, 'companyId'> {
  return { sinceMs: Date.parse(since), untilMs: until === undefined ? null : Date.parse(until) };
}
