import { parseDelay } from '@posthorn/domain/delivery/schedule.ts';
import { StartupError } from '@posthorn/platform/service/errors.ts';
import { httpUrl, settings } from '@posthorn/platform/service/settings.ts';
import { z } from 'zod';

/** A canary that sends more often would be load itself. */
const MIN_INTERVAL_MS = 1_000;

const interval = z.string().transform((text, context): number => {
  const everyMs = parseDelay(text.trim());
  if (everyMs !== null && everyMs >= MIN_INTERVAL_MS) return everyMs;
  const message = 'must be from 1s to 168h, a number with ms, s, m or h, such as 10s';
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
});

/** The canary runs when all of the first three are set. */
export const canarySettings = {
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
  CANARY_INTERVAL: interval.prefault('10s').describe('How often a canary message is sent'),
};

/** Where a canary sends, and where it listens. */
interface CanaryAddresses {
  apiKey: string;
  gatewayUrl: string;
  receiverUrl: string;
}

/** The settings of the canary, parsed. */
export type CanaryConfig = z.infer<z.ZodObject<typeof canarySettings>>;

/** Returns null when the canary is off. Throws StartupError that names what is missing when only a part is set. */
export function readCanary(
  config: Pick<CanaryConfig, 'CANARY_API_KEY' | 'CANARY_GATEWAY_URL' | 'CANARY_RECEIVER_URL'>,
): CanaryAddresses | null {
  const { CANARY_API_KEY, CANARY_GATEWAY_URL, CANARY_RECEIVER_URL } = config;
  if (CANARY_API_KEY && CANARY_GATEWAY_URL && CANARY_RECEIVER_URL) {
    return {
      apiKey: CANARY_API_KEY,
      gatewayUrl: CANARY_GATEWAY_URL.replace(/\/$/, ''),
      receiverUrl: CANARY_RECEIVER_URL,
    };
  }
  const all = Object.entries({ CANARY_API_KEY, CANARY_GATEWAY_URL, CANARY_RECEIVER_URL });
  const missing = all.filter(([, value]) => !value).map(([name]) => name);
  if (missing.length === all.length) return null;
  throw new StartupError(
    `The canary also needs ${missing.join(' and ')}. Without all three settings it is off.`,
  );
}
