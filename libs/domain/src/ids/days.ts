/** Days are those of UTC. Each has a number, counted from 1970, and a name such as `2026-11-24`. */

export const DAY_MS = 86_400_000;

/** The number of the day of a time, in milliseconds since 1970. */
export function dayNumberOf(ms: number): number {
  return Math.floor(ms / DAY_MS);
}

export function dayName(dayNumber: number): string {
  return new Date(dayNumber * DAY_MS).toISOString().slice(0, 10);
}

/** The number of a day by its name; null for a text that names none. */
export function dayNumberOfName(name: string): number | null {
  const dayNumber = dayNumberOf(Date.parse(name));
  return /^\d{4}-\d\d-\d\d$/.test(name) && !Number.isNaN(dayNumber) ? dayNumber : null;
}
