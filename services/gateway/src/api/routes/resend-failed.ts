import { OUTCOMES } from '@posthorn/domain/outcome.ts';
import type { Resend } from '@posthorn/domain/resend.ts';
import { z } from 'zod';
import { describeResend, resendSchema } from '../../http/responses/resend.ts';
import { route, type ApiResponse, type Route } from '../../http/request/route.ts';
import type { FailedSpan, StartResend } from '../../resend/start-resend.ts';
import { timeText } from './fields.ts';

export interface ResendFailedDeps {
  startResend: Pick<StartResend, 'ofWebhook' | 'ofApp' | 'countOfWebhook' | 'countOfApp'>;
}

const spanFields = {
  since: timeText,
  until: timeText
    .optional()
    .meta({ description: 'Not before `since`. Defaults to the time of the request' }),
};

// Runs even if another field is wrong: one response reports every problem.
const ALWAYS = { when: () => true };

const ofAppBody = z
  .object(spanFields)
  .superRefine(refuseUntilBeforeSince, ALWAYS)
  .meta({ id: 'ResendFailed' });

const ofWebhookBody = z
  .object({
    ...spanFields,
    outcome: z.enum(OUTCOMES).exclude(['success']).optional().meta({
      description: 'Only deliveries whose last attempt ended with it. Without it, all that failed',
    }),
  })
  .superRefine(refuseUntilBeforeSince, ALWAYS)
  .meta({ id: 'ResendFailedOfWebhook' });

interface SpanBody {
  since: string;
  until?: string | undefined;
}

/** Only compares two times. A field that is not one was reported already. */
function refuseUntilBeforeSince({ since, until }: SpanBody, context: z.RefinementCtx): void {
  if (typeof until !== 'string' || typeof since !== 'string') return;
  if (!(Date.parse(until) < Date.parse(since))) return;
  context.addIssue({ code: 'custom', path: ['until'], message: 'must not be before since' });
}

const estimateSchema = z
  .object({
    total: z
      .int()
      .meta({ description: 'Number of deliveries to send again; counted up to 100,000' }),
  })
  .meta({ id: 'ResendEstimate' });
const estimate = {
  method: 'get',
  versionedOnly: true,
  scope: 'read',
  portal: 'view',
  query: z.object({ since: timeText }),
  response: { status: 200, message: 'Deliveries counted', data: estimateSchema },
  errors: ['not_found'],
} as const;

const versionedOnly = true;
const response = { status: 202, message: 'Resend started', data: resendSchema } as const;

/** Resends what failed in a span of time, in the background (docs/contract.md C11.4, C11.5). */
export function resendFailedRoutes({ startResend }: ResendFailedDeps): Route[] {
  return [
    route({
      method: 'post',
      path: '/webhooks/:webhookId/resend-failed',
      versionedOnly,
      scope: 'messages:write',
      portal: 'resend',
      audit: { action: 'resend.started', target: 'webhook' },
      tag: 'Webhooks',
      summary: 'Resend the failed deliveries of a webhook',
      description:
        'Makes one attempt for each exhausted or cancelled delivery that was created from `since` to `until`, or for those of one `outcome`. Attempts run in the background, oldest delivery first. Only one such resend of a webhook runs at a time. `GET /api/v1/resends/{id}` shows the progress.',
      body: ofWebhookBody,
      response,
      errors: ['not_found', 'webhook_disabled', 'resend_running'],
      async handle({ caller: { companyId }, params: { webhookId = '' }, body: { value } }) {
        const span = spanOf(companyId, value);
        const { outcome = null } = value;
        return started(await startResend.ofWebhook({ ...span, webhookId, outcome }), value);
      },
    }),
    route({
      method: 'post',
      path: '/apps/:appId/resend-failed',
      versionedOnly,
      scope: 'messages:write',
      portal: 'resend',
      audit: { action: 'resend.started', target: 'app' },
      tag: 'Apps',
      summary: 'Resend the failed deliveries of an app',
      description:
        'Makes one attempt for each exhausted or cancelled delivery to a webhook of the app that was created from `since` to `until`. Attempts run in the background, for several webhooks at a time, oldest delivery of each first. Disabled webhooks are left out. When an endpoint keeps failing for five minutes, its remaining deliveries are not sent: they count as `failed` and keep their status. Only one resend of an app runs at a time. `GET /api/v1/resends/{id}` shows the progress.',
      body: ofAppBody,
      response,
      errors: ['not_found', 'resend_running'],
      async handle({ caller: { companyId }, params: { appId = '' }, body: { value } }) {
        const span = spanOf(companyId, value);
        return started(await startResend.ofApp({ ...span, appId }), value);
      },
    }),
    ...estimateRoutes(startResend),
  ];
}

function estimateRoutes(startResend: ResendFailedDeps['startResend']): Route[] {
  return [
    route({
      ...estimate,
      path: '/webhooks/:webhookId/resend-failed/estimate',
      tag: 'Webhooks',
      summary: 'Count the failed deliveries of a webhook',
      description: 'Returns how many deliveries `resend-failed` would send again now.',
      async handle({ caller: { companyId }, params: { webhookId = '' }, query }) {
        const span = { companyId, webhookId, sinceMs: Date.parse(query.since), untilMs: null };
        return { data: { total: await startResend.countOfWebhook(span) } };
      },
    }),
    route({
      ...estimate,
      path: '/apps/:appId/resend-failed/estimate',
      tag: 'Apps',
      summary: 'Count the failed deliveries of an app',
      description:
        'Returns how many deliveries `resend-failed` would send again now: those to enabled webhooks of the app.',
      async handle({ caller: { companyId }, params: { appId = '' }, query }) {
        const span = { companyId, appId, sinceMs: Date.parse(query.since), untilMs: null };
        return { data: { total: await startResend.countOfApp(span) } };
      },
    }),
  ];
}

function started(resend: Resend, asked: SpanBody): ApiResponse {
  const changed = { before: {}, after: { ...asked, resendId: resend.id } };
  return { data: describeResend(resend), changed };
}

function spanOf(companyId: string, { since, until }: SpanBody): FailedSpan {
  return {
    companyId,
    sinceMs: Date.parse(since),
    untilMs: until === undefined ? null : Date.parse(until),
  };
}
