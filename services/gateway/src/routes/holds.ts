import type { AskedHold } from '@posthorn/domain/waiting.ts';
import { z } from 'zod';
import type { Gateway } from '../gateway.ts';
import { route, type Route } from '../http/route.ts';
import type { Caller } from '../keys/rights.ts';
import { appSchema, describeApp } from './apps.ts';
import { optionalFields, removableFields, text, timeText, wholeNumber } from './fields.ts';
import { describeWebhook, shownTo, webhookSchema } from './webhook-responses.ts';

const holdBody = z
  .object({
    ...removableFields({
      until: timeText.meta({
        description:
          'When the hold ends by itself: in the future, and a day before deliveries expire at the latest. Null for never, which a new hold has when it is left out; a repeat without it keeps the end',
      }),
    }),
    ...optionalFields({
      reason: text(1, 500).meta({
        description: 'For people. A repeat replaces it',
        example: 'maintenance of the endpoint',
      }),
    }),
  })
  .meta({ id: 'BeginHold' });

const resumeBody = z
  .object(
    optionalFields({
      ratePerSecond: wholeNumber(1, 10_000).meta({
        description: 'Most waiting deliveries of one webhook that are released in a second',
      }),
    }),
  )
  .meta({ id: 'EndHold' });

const common = {
  method: 'post',
  versionedOnly: true,
  scope: 'webhooks:write',
  portal: 'controlDeliveries',
  people: 'support',
  isBodyOptional: true,
  errors: ['not_found'],
} as const;

/** See docs/contract.md C24. */
export function holdRoutes(gateway: Gateway): Route[] {
  return [
    holdWebhookRoute(gateway),
    resumeWebhookRoute(gateway),
    holdAppRoute(gateway),
    resumeAppRoute(gateway),
  ];
}

function holdWebhookRoute({ holds }: Gateway): Route {
  return route({
    ...common,
    operationId: 'holdWebhook',
    path: '/webhooks/:webhookId/hold',
    audit: { action: 'webhook.held', target: 'webhook' },
    tag: 'Webhooks',
    summary: 'Hold the deliveries of a webhook',
    description:
      'Attempts that come due wait, retries too, and keep their number; those under way are finished. Nothing is requested after two seconds. A repeat replaces the reason, and the end that it gives.',
    body: holdBody,
    response: { status: 200, message: 'Webhook on hold', data: webhookSchema },
    async handle({ caller, params: { webhookId = '' }, body: { value } }) {
      const { companyId } = caller;
      const { after } = await holds.holdWebhook({ companyId, webhookId }, asked(caller, value));
      return { data: shownTo(caller, describeWebhook)(after) };
    },
  });
}

function resumeWebhookRoute({ holds }: Gateway): Route {
  return route({
    ...common,
    operationId: 'resumeWebhook',
    path: '/webhooks/:webhookId/resume',
    audit: { action: 'webhook.resumed', target: 'webhook' },
    tag: 'Webhooks',
    summary: 'End the hold of a webhook',
    description:
      'What waits is released in the background, oldest first, as fast as the endpoint takes it, or at `ratePerSecond`; a new message waits behind at most what the endpoint takes in some seconds. `waiting` of `GET /webhooks/{id}` shows how many are left. While its app is on hold, or its company suspended, its deliveries go on waiting.',
    body: resumeBody,
    response: { status: 202, message: 'Webhook resumed', data: webhookSchema },
    async handle({ caller, params: { webhookId = '' }, body: { value } }) {
      const which = { companyId: caller.companyId, webhookId };
      const { after } = await holds.resumeWebhook(which, value.ratePerSecond);
      return { data: shownTo(caller, describeWebhook)(after) };
    },
  });
}

function holdAppRoute({ holds }: Gateway): Route {
  return route({
    ...common,
    operationId: 'holdApp',
    path: '/apps/:appId/hold',
    audit: { action: 'app.held', target: 'app' },
    tag: 'Apps',
    summary: 'Hold the deliveries of an app',
    description: 'The same as the hold of a webhook, for all webhooks that the app has or gets.',
    body: holdBody,
    response: { status: 200, message: 'App on hold', data: appSchema },
    async handle({ caller, params: { appId = '' }, body: { value } }) {
      const { companyId } = caller;
      const { after } = await holds.holdApp({ companyId, appId }, asked(caller, value));
      return { data: describeApp(after) };
    },
  });
}

function resumeAppRoute({ holds }: Gateway): Route {
  return route({
    ...common,
    operationId: 'resumeApp',
    path: '/apps/:appId/resume',
    audit: { action: 'app.resumed', target: 'app' },
    tag: 'Apps',
    summary: 'End the hold of an app',
    description:
      'What waits is released as for a webhook, several webhooks at a time. A webhook with a hold of its own stays on hold.',
    body: resumeBody,
    response: { status: 202, message: 'App resumed', data: appSchema },
    async handle({ caller: { companyId }, params: { appId = '' }, body: { value } }) {
      const { after } = await holds.resumeApp({ companyId, appId }, value.ratePerSecond);
      return { data: describeApp(after) };
    },
  });
}

function asked(
  { keyId, portal, person }: Caller,
  { until, reason }: z.infer<typeof holdBody>,
): AskedHold {
  return {
    ...(until !== undefined && { untilMs: until === null ? null : Date.parse(until) }),
    reason: reason ?? null,
    by: portal?.linkId ?? person?.id ?? keyId,
  };
}
