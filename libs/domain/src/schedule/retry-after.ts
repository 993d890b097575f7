import type { Header } from '../webhook.ts';

/** The longest hold, whatever an endpoint asks for: after an hour it gets the next attempt. */
export const MAX_HOLD_MS = 3_600_000;

/**
 * How long, in milliseconds from now, a response asks for a pause: `Retry-After` as seconds or as an
 * HTTP date (RFC 9110, 10.2.3), at most an hour; null when the header is missing or unreadable.
 */
export function retryAfterMsOf(headers: readonly Header[], nowMs: number): number | null {
  const text = headers.find(({ key }) => key.toLowerCase() === 'retry-after')?.value.trim();
  if (!text) return null;
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1_000 : dateMsOf(text) - nowMs;
  if (Number.isNaN(waitMs)) return null;
  return Math.min(Math.max(waitMs, 0), MAX_HOLD_MS);
}

/** NaN without a letter: `Date.parse` takes `-5` and `1.5` for days of 2001. */
function dateMsOf(text: string): number {
  return /[a-z]/i.test(text) ? Date.parse(text) : NaN;
}
