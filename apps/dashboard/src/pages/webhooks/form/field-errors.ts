import { isAtOneOf } from '../../../parts/form-fields.ts';
import { BLANK } from './auth-draft.ts';
import { TLS_PARTS } from './tls-rules.ts';

/** Whether a field of the form of a webhook says what is wrong. */
export const hasField = isAtOneOf([
  'url',
  'name',
  'uid',
  'eventTypes',
  'secret',
  'signatureHeaders',
  'rateLimitPerSecond',
  'timeoutSeconds',
  'maxAttempts',
  'finalStatusCodes',
  'onGone',
  'obeyControlHeaders',
  'customHeaders',
  'metadata',
  'authMethod',
  ...Object.keys(BLANK),
  ...TLS_PARTS.map((part) => `tls.${part}`),
]);
