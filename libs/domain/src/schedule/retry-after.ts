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
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1_000 : httpDateMsOf(text, nowMs) - nowMs;
  if (Number.isNaN(waitMs)) return null;
  return Math.min(Math.max(waitMs, 0), MAX_HOLD_MS);
}

/** The three forms of RFC 9110, 5.6.7; all are in UTC, whatever the time zone of this process. */
const DATE_FORMS = [
  /^(?:Sun|Mon|Tue|Wed|Thu|Fri|Sat), (?<day>\d\d?) (?<month>\w{3}) (?<year>\d{4}) (?<time>[\d:]+) GMT$/,
  /^(?:Sun|Mon|Tues|Wednes|Thurs|Fri|Satur)day, (?<day>\d\d?)-(?<month>\w{3})-(?<year>\d\d) (?<time>[\d:]+) GMT$/,
  /^(?:Sun|Mon|Tue|Wed|Thu|Fri|Sat) (?<month>\w{3}) +(?<day>\d\d?) (?<time>[\d:]+) (?<year>\d{4})$/,
];
const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
/** The second 60 is a leap second. */
const TIME = /^([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)$/;

/**
 * Returns the milliseconds since 1970 of an HTTP date; NaN when it is none, such as 31 February. `Date.parse` reads the
 * form of asctime in local time, and much else as a date.
 */
function httpDateMsOf(text: string, nowMs: number): number {
  const form = DATE_FORMS.find((each) => each.test(text));
  const { day = '', month = '', year = '', time = '' } = form?.exec(text)?.groups ?? {};
  const [, hours, minutes, seconds] = TIME.exec(time)?.map(Number) ?? [];
  if (hours === undefined || minutes === undefined || seconds === undefined) return NaN;
  const fullYear = year.length === 2 ? nearestYear(Number(year), nowMs) : Number(year);
  const midnightMs = Date.UTC(fullYear, MONTHS.indexOf(month), Number(day));
  const isReal = new Date(midnightMs).getUTCDate() === Number(day) && MONTHS.includes(month);
  return isReal ? midnightMs + ((hours * 60 + minutes) * 60 + seconds) * 1_000 : NaN;
}

/** A year of two digits is at most 50 years ahead (RFC 9110, 5.6.7), and else in the past. */
function nearestYear(digits: number, nowMs: number): number {
  const latest = new Date(nowMs).getUTCFullYear() + 50;
  return latest - ((latest - digits) % 100);
}
