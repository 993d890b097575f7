import type { ResendStore } from '@posthorn/platform/mongo/resends/resends.ts';
import { delivery, describeDelivery } from '../../http/answers/delivery.ts';
import { describeResend, resend } from '../../http/answers/resend.ts';
import { notFound } from '../../http/api-error.ts';
import { NO_FIELDS, route, type Route } from '../../http/route.ts';
import { readDelivery, type ReadDeps } from '../../history/read-delivery.ts';
import type { StartResend } from '../../resend/start-resend.ts';

export interface ResendRouteDeps extends ReadDeps {
  resends: Pick<ResendStore, 'findShown'>;
  startResend: StartResend;
}

const tag = 'Deliveries';
const versionedOnly = true;

export function resendRoutes(deps: ResendRouteDeps): Route[] {
  return [
    route({
      method: 'post',
      path: '/deliveries/:deliveryId/resend',
      versionedOnly,
      tag,
      summary: 'Send a delivery again',
      description:
        'One attempt, numbered on and not retried. A success makes the delivery `delivered`; a failure leaves its status as it was.',
      body: NO_FIELDS,
      isBodyOptional: true,
      answer: { status: 200, message: 'Resend started', data: delivery },
      errors: [
        ...(['not_found', 'delivery_pending', 'resend_running'] as const),
        ...(['webhook_deleted', 'webhook_disabled'] as const),
      ],
      async handle({ caller: { companyId }, params: { deliveryId = '' } }) {
        const found = await readDelivery(deps, companyId, deliveryId);
        if (!found) throw notFound('delivery');
        await deps.startResend.one(found.source);
        return { data: describeDelivery(found.source, found.sendable) };
      },
    }),
    route({
      method: 'get',
      path: '/resends/:resendId',
      versionedOnly,
      tag,
      summary: 'See how far a resend has got',
      answer: { status: 200, message: 'Resend found', data: resend },
      errors: ['not_found'],
      async handle({ caller: { companyId }, params: { resendId = '' } }) {
        const found = await deps.resends.findShown(companyId, resendId);
        if (!found) throw notFound('resend');
        return { data: describeResend(found) };
      },
    }),
  ];
}
