import type { Header } from '../webhook.ts';

/** However long an endpoint asks for: beyond an hour it is asked again. */
export const MAX_HOLD_MS = 3_600_000;

/**
 * For how long, in milliseconds from now, an answer asks not to be sent anything: `Retry-After` as
 * seconds or as an HTTP date (RFC 9110, 10.2.3), an hour at most; null without one that can be read.
 */
export function retryAfterMsOf(headers: readonly Header[], nowMs: number): number | null {
  const text = headers.find(({ key }) => key.toLowerCase() === 'retry-after')?.value.trim();
  if (!text) return null;
  const waitMs = /^\d{1,10}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - nowMs;
  if (Number.isNaN(waitMs)) return null;
  return Math.min(Math.max(waitMs, 0), MAX_HOLD_MS);
}
