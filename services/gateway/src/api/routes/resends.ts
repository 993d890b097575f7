import type { ResendStore } from '@posthorn/platform/mongo/resends/resends.ts';
import { notFound } from '../../http/api-error.ts';
import { deliverySchema, describeDelivery } from '../../http/responses/delivery.ts';
import { describeResend, resendSchema } from '../../http/responses/resend.ts';
import { NO_FIELDS, route, type Route } from '../../http/request/route.ts';
import { resendDelivery, type ResendDeliveryDeps } from '../../resend/resend-delivery.ts';

export interface ResendRouteDeps extends ResendDeliveryDeps {
  resends: Pick<ResendStore, 'findShown'>;
}

const tag = 'Deliveries';
const versionedOnly = true;

/** See docs/contract.md C11. */
export function resendRoutes(deps: ResendRouteDeps): Route[] {
  return [
    route({
      method: 'post',
      path: '/deliveries/:deliveryId/resend',
      versionedOnly,
      scope: 'messages:write',
      portal: 'resend',
      audit: { action: 'resend.started', target: 'delivery' },
      tag,
      summary: 'Resend a delivery',
      description:
        'Makes one attempt, which has the next number and is not retried. A success makes the delivery `delivered`; a failure leaves its status as it was.',
      body: NO_FIELDS,
      isBodyOptional: true,
      response: { status: 200, message: 'Resend started', data: deliverySchema },
      errors: [
        'not_found',
        'delivery_pending',
        'resend_running',
        'webhook_deleted',
        'webhook_disabled',
        'payload_erased',
      ],
      async handle({ caller: { companyId }, params: { deliveryId = '' } }) {
        const resent = await resendDelivery(deps, companyId, deliveryId);
        return { data: describeDelivery(resent.source, resent.sentHeaders) };
      },
    }),
    route({
      method: 'get',
      path: '/resends/:resendId',
      versionedOnly,
      scope: 'read',
      portal: 'view',
      tag,
      summary: 'Get the progress of a resend',
      response: { status: 200, message: 'Resend found', data: resendSchema },
      errors: ['not_found'],
      async handle({ caller: { companyId }, params: { resendId = '' } }) {
        const found = await deps.resends.findShown(companyId, resendId);
        if (!found) throw notFound('resend');
        return { data: describeResend(found) };
      },
    }),
  ];
}
