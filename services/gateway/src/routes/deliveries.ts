import { describeDelivery } from '../describe-delivery.ts';
import { notFound } from '../http/api-error.ts';
import type { Route } from '../http/route.ts';
import { readDelivery, type ReadDeps } from '../read-delivery.ts';

export function deliveryRoutes(deps: ReadDeps): Route[] {
  return [
    {
      method: 'get',
      path: '/deliveries/:deliveryId',
      versionedOnly: true,
      async handle({ caller, params: { deliveryId = '' } }) {
        const delivery = await readDelivery(deps, caller.companyId, deliveryId);
        if (!delivery) throw notFound('delivery');
        return { status: 200, message: 'Delivery found', data: describeDelivery(delivery) };
      },
    },
  ];
}
