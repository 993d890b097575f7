import type { Quotas } from '../../../services/gateway/src/projects/quotas.ts';

/** Lets everything be created. */
export const NO_QUOTAS: Quotas = {
  createWithin: ({ create }) => create(),
  assertWithin: () => undefined,
  noteEmpty: () => undefined,
};
