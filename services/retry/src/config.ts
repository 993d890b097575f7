import { parseDelay } from '@posthorn/domain/delivery/schedule.ts';
import { OPERATOR_FORMATS } from '@posthorn/domain/operator-events.ts';
import { HOUR_MS } from '@posthorn/domain/stats.ts';
import { httpUrl, settings } from '@posthorn/platform/service/settings.ts';
import { z } from 'zod';

/** A time as text, such as 24h, of at least `minMs`; a week at most. */
function timeFrom(minMs: number, range: string) {
  return z.string().transform((text, context): number => {
    const ms = parseDelay(text.trim());
    if (ms !== null && ms >= minMs) return ms;
    context.addIssue({ code: 'custom', message: `must be from ${range}` });
    return z.NEVER;
  });
}

/** With less than a second, sweeps would follow one another without a pause. */
const reconcileAfter = timeFrom(1_000, '1s to 168h, a number with ms, s, m or h, such as 24h');
/** A day to be sure that it fails, and a day between the warning and the end. */
const autoDisableAfter = timeFrom(48 * HOUR_MS, '48h to 168h, such as 120h');
/** A canary that sends more often would be load itself. */
const canaryInterval = timeFrom(1_000, '1s to 168h, a number with ms, s, m or h, such as 10s');

/** The canary runs when all of the first three are set. */
export const canarySettings = z.object({
  CANARY_API_KEY: z
    .string()
    .optional()
    .describe('API key, best of a company of its own, with which canary messages are sent'),
  CANARY_GATEWAY_URL: httpUrl
    .optional()
    .describe('Address of the API to which canary messages are sent'),
  CANARY_RECEIVER_URL: httpUrl
    .optional()
    .describe('Address under which dispatchers reach the port of the canary'),
  CANARY_PORT: settings.port
    .default(9_113)
    .describe('Port on OPS_HOST on which canary messages arrive'),
  CANARY_INTERVAL: canaryInterval.prefault('10s').describe('How often a canary message is sent'),
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
    .describe(
      'Signs operator events (Standard Webhooks); required with OPERATOR_WEBHOOK_URL where the format is `standard`',
    ),
  OPERATOR_WEBHOOK_FORMAT: z
    .enum(OPERATOR_FORMATS, `must be one of ${OPERATOR_FORMATS.join(', ')}`)
    .default('standard')
    .describe(
      'Form of operator events: `standard`; `slack` for an incoming webhook of Slack, `teams` for Workflows of Teams, which are not signed: their URL is the secret',
    ),
  AUTO_DISABLE_AFTER: autoDisableAfter
    .optional()
    .describe(
      'A webhook whose attempts have all failed for so long is disabled, a day after a warning to the operator; not set: never',
    ),
  ...settings.publicUrl,
  ...canarySettings.shape,
  ...settings.memory('retry'),
  ...settings.kafka,
  ...settings.mongodb,
  ...settings.redis,
  ...settings.encryption,
  ...settings.process(9103),
});

export type RetryConfig = z.infer<typeof retryConfig>;
