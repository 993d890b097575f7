import type { Quotas } from '../../../services/gateway/src/limits/quotas.ts';

/** Lets everything be created. */
export const NO_QUOTAS: Quotas = { createWithin: ({ create }) => create() };
