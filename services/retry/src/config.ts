import { parseDelay } from '@posthorn/domain/delivery/schedule.ts';
import { HOUR_MS } from '@posthorn/domain/stats.ts';
import { httpUrl, settings } from '@posthorn/platform/service/settings.ts';
import { z } from 'zod';
import { canarySettings } from './canary-settings.ts';

/** With less than this, sweeps would follow one another without a pause. */
const MIN_RECONCILE_AFTER_MS = 1_000;

const reconcileAfter = z.string().transform((text, context): number => {
  const afterMs = parseDelay(text.trim());
  if (afterMs !== null && afterMs >= MIN_RECONCILE_AFTER_MS) return afterMs;
  const message = 'must be from 1s to 168h, a number with ms, s, m or h, such as 24h';
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
});

/** A day to be sure that it fails, and a day between the warning and the end. */
const MIN_AUTO_DISABLE_AFTER_MS = 48 * HOUR_MS;

const autoDisableAfter = z.string().transform((text, context): number => {
  const afterMs = parseDelay(text.trim());
  if (afterMs !== null && afterMs >= MIN_AUTO_DISABLE_AFTER_MS) return afterMs;
  context.addIssue({ code: 'custom', message: 'must be from 48h to 168h, such as 120h' });
  return z.NEVER;
});

export const retryConfig = z.object({
  RECONCILE_AFTER: reconcileAfter
    .prefault('24h')
    .describe(
      'How late a delivery may be before it counts as lost and is published again; must be shorter than RETENTION_DAYS, and should be at least twice the longest of DEFERRAL_DELAYS',
    ),
  OPERATOR_WEBHOOK_URL: httpUrl
    .optional()
    .describe(
      'Where operator events are sent; the egress rules do not apply to it. Without it they are in their topic only',
    ),
  OPERATOR_WEBHOOK_SECRET: z
    .string()
    .regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/, 'must be whsec_ and base64 of 24 to 64 bytes')
    .optional()
    .describe('Signs operator events (Standard Webhooks); required with OPERATOR_WEBHOOK_URL'),
  AUTO_DISABLE_AFTER: autoDisableAfter
    .optional()
    .describe(
      'A webhook whose attempts have all failed for so long is disabled, a day after a warning to the operator; not set: never',
    ),
  ...canarySettings,
  ...settings.memory('retry'),
  ...settings.kafka,
  ...settings.mongodb,
  ...settings.encryption,
  ...settings.process(9103),
});

export type RetryConfig = z.infer<typeof retryConfig>;
