import type { Span } from '@posthorn/domain/stats.ts';
import { z } from 'zod';

/** A month of UTC as `2026-11`, as the span from its beginning to its end. */
export const monthOption = z
  .string()
  .regex(/^\d{4}-(0[1-9]|1[0-2])$/, 'must be a month such as 2026-11')
  .transform((text): Span => {
    const [year = 0, month = 0] = text.split('-').map(Number);
    return { fromMs: Date.UTC(year, month - 1), toMs: Date.UTC(year, month) };
  });
