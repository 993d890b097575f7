import type { DisabledReason, Header, Webhook } from '../webhook.ts';
import type { Attempt, Ending, ExhaustReason } from './delivery.ts';

/** The settings of a webhook that end its deliveries before their schedule does. */
interface EndingSettings extends Pick<Webhook, 'maxAttempts' | 'onGone' | 'obeyControlHeaders'> {
  finalStatusCodes: readonly number[] | null;
}

type Response = Pick<Attempt, 'statusCode' | 'responseHeaders'>;

const GONE = 410;

/**
 * Returns why the failed attempt is the last one of its delivery (docs/contract.md C10.11); null when the schedule decides.
 * The response of the endpoint comes before the number of attempts: it says more. `webhook` is that of the attempt, so a
 * webhook that is changed later changes nothing.
 */
export function endingOf(
  webhook: EndingSettings,
  attempt: Response & Pick<Attempt, 'outcome' | 'number'>,
): Ending | null {
  if (attempt.outcome === 'success') return null;
  if (isGone(webhook, attempt)) return 'gone';
  if (controlOf(webhook, attempt) === 'abort-message') return 'aborted';
  const { statusCode } = attempt;
  const isFinal = statusCode !== null && webhook.finalStatusCodes?.includes(statusCode) === true;
  if (isFinal) return 'not_retryable';
  return hasAllAttempts(webhook, attempt.number) ? 'max_attempts' : null;
}

/** Whether attempt `number` is the last one that the webhook allows: the first steps of the schedule, never other ones. */
export function hasAllAttempts(
  { maxAttempts }: Pick<Webhook, 'maxAttempts'>,
  number: number,
): boolean {
  return maxAttempts !== null && number >= maxAttempts;
}

/** The reason of an exhausted delivery; null when all of its attempts were made. */
export function exhaustReasonOf(ending: Ending | null): ExhaustReason | null {
  return ending === 'max_attempts' ? null : ending;
}

/** Returns why the response disables the webhook (docs/contract.md C6.22, C6.23), also that of a resend; else null. */
export function disabledReasonOf(
  webhook: EndingSettings,
  response: Response,
): Extract<DisabledReason, 'gone' | 'control_header'> | null {
  if (isGone(webhook, response)) return 'gone';
  return controlOf(webhook, response) === 'disable' ? 'control_header' : null;
}

function isGone({ onGone }: EndingSettings, { statusCode }: Response): boolean {
  return statusCode === GONE && onGone === 'disable';
}

/** The header by which a receiver controls its deliveries. The values are those of Svix. */
export const CONTROL_HEADER = 'webhook-delivery';

function controlOf(
  { obeyControlHeaders }: EndingSettings,
  { responseHeaders }: Response,
): string | null {
  return obeyControlHeaders ? valueOf(responseHeaders) : null;
}

function valueOf(headers: readonly Header[]): string | null {
  const header = headers.find(({ key }) => key.toLowerCase() === CONTROL_HEADER);
  return header ? header.value.trim().toLowerCase() : null;
}
