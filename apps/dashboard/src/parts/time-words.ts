const STEPS = [
  { unit: 'day', ms: 86_400_000 },
  { unit: 'hour', ms: 3_600_000 },
  { unit: 'minute', ms: 60_000 },
  { unit: 'second', ms: 1_000 },
] as const;

const words = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'long' });
const absolute = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'medium',
  timeStyle: 'long',
});

/** Clocks differ, and the time of a page is up to five seconds old. */
const NOW_MS = 5_000;

/** Returns `5 minutes ago`, or `in 2 hours`. */
export function relativeTime(atMs: number, nowMs: number): string {
  const distanceMs = atMs - nowMs;
  if (distanceMs >= 0 && distanceMs < NOW_MS) return 'now';
  const step = STEPS.find(({ ms }) => Math.abs(distanceMs) >= ms);
  if (step === undefined) return 'just now';
  return words.format(Math.trunc(distanceMs / step.ms), step.unit);
}

/** Returns the local time with its zone. */
export function absoluteTime(atMs: number): string {
  return absolute.format(atMs);
}

const HOUR_MS = 3_600_000;
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const dayAndClock = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
});

/** Returns `13:00–14:00` of the local day, or `24 Nov, 13:00–14:00` of an earlier one, for an hour that begins then. */
export function hourText(beginsAtMs: number, nowMs: number): string {
  const isToday = new Date(beginsAtMs).toDateString() === new Date(nowMs).toDateString();
  const begins = (isToday ? clock : dayAndClock).format(beginsAtMs);
  return `${begins}–${clock.format(beginsAtMs + HOUR_MS)}`;
}

/** Returns `120 ms`, `1.5 s` or `2 min 5 s`. */
export function durationText(durationMs: number): string {
  if (durationMs < 1_000) return `${Math.round(durationMs)} ms`;
  if (durationMs < 60_000) return `${(durationMs / 1_000).toFixed(1)} s`;
  const seconds = Math.round(durationMs / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}

const count = new Intl.NumberFormat('en');

export function countText(value: number): string {
  return count.format(value);
}
