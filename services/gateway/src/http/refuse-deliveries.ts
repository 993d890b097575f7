import type { RequestHandler } from 'express';
import { ApiError } from './api-error.ts';

/** Every delivery has it (docs/contract.md C9.7), and no webhook may set it as a custom header (C6.7). */
const DELIVERY_HEADER = 'webhook-id';

/**
 * Refuses a delivery that is sent to this API. With an API key as a custom header, a webhook could send
 * messages to itself, and each of them several more.
 */
export const refuseDeliveries: RequestHandler = (request, _response, next) => {
  if (request.headers[DELIVERY_HEADER] === undefined) {
    next();
    return;
  }
  throw new ApiError(
    400,
    'delivery_refused',
    `A request with the header ${DELIVERY_HEADER} is a delivery; the API does not take deliveries.`,
  );
};
