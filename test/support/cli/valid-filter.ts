import { parseFilter } from '@posthorn/domain/parse-filter.ts';

/** Whether the API takes the filter of a webhook (docs/contract.md C27). */
export const isValidFilter = (given: unknown): boolean => 'filter' in parseFilter(given);
