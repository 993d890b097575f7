import { readDelivery, type ReadDelivery, type ReadDeps } from '../history/read-delivery.ts';
import { ApiError, notFound } from '../http/api-error.ts';
import type { StartResend } from './start-resend.ts';

export interface ResendDeliveryDeps extends ReadDeps {
  startResend: Pick<StartResend, 'ofDelivery'>;
}

/**
 * Starts the resend of one delivery and returns the delivery as it was before. Throws ApiError 404 for an
 * unknown delivery, 409 as StartResend does and when the payload was erased.
 */
export async function resendDelivery(
  deps: ResendDeliveryDeps,
  companyId: string,
  deliveryId: string,
): Promise<ReadDelivery> {
  const found = await readDelivery(deps, companyId, deliveryId);
  if (!found) throw notFound('delivery');
  if (found.isPayloadErased) {
    throw new ApiError(409, 'payload_erased', 'The payload was erased once it was delivered.');
  }
  await deps.startResend.ofDelivery(found.source);
  return found;
}
