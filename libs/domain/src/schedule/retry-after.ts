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
  const waitMs = /^\d{1,10}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - nowMs;
  if (Number.isNaN(waitMs)) return null;
  return Math.min(Math.max(waitMs, 0), MAX_HOLD_MS);
}
