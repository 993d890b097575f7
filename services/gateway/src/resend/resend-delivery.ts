import { readDelivery, type ReadDelivery, type ReadDeps } from '../history/read-delivery.ts';
import { notFound } from '../http/api-error.ts';
import type { StartResend } from './start-resend.ts';

export interface ResendDeliveryDeps extends ReadDeps {
  startResend: Pick<StartResend, 'ofDelivery'>;
}

/**
 * Starts the resend of one delivery and returns the delivery as it was before. Throws ApiError 404 for an
 * unknown delivery, 409 as StartResend does.
 */
export async function resendDelivery(
  deps: ResendDeliveryDeps,
  companyId: string,
  deliveryId: string,
): Promise<ReadDelivery> {
  const found = await readDelivery(deps, companyId, deliveryId);
  if (!found) throw notFound('delivery');
  await deps.startResend.ofDelivery(found.source);
  return found;
}
