import type { z } from 'zod';

/** The last moment that a Date can hold. */
export const MAX_DATE_MS = 8_640_000_000_000_000;

/** Returns null for JSON that does not fit: whatever is in Redis may come from anybody who can write there. */
export function parseStored<Value>(schema: z.ZodType<Value>, text: string): Value | null {
  try {
    return schema.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}
