import { AUTH_SECRETS } from '@posthorn/domain/auth-methods.ts';
import { pino, type DestinationStream, type Logger } from 'pino';

export type { Logger } from 'pino';

/** Writes one JSON line per entry, to standard output unless given. Fields whose name suggests a secret are redacted. */
export function createLogger(
  service: string,
  level: string,
  destination?: DestinationStream,
): Logger {
  const options = {
    level,
    base: { service },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }), log: shownFields },
    // Without it pino would treat the reduced error as a whole one and add fields.
    serializers: { err: (shown: unknown) => shown },
  };
  return pino(options, destination ?? (level === 'silent' ? NOWHERE : standardOutput()));
}

const NOWHERE: DestinationStream = { write: () => undefined };

/**
 * Lines are written together, ten times a second: a write for each line took 10 % of the gateway at 650
 * messages per second, and 50 empty flushes a second woke an idle process and a thread of its pool 50
 * times. An exit writes what is left; only a SIGKILL loses the lines of its last 100 ms.
 */
function standardOutput(): DestinationStream {
  return pino.destination({ dest: 1, sync: false, minLength: 8_192, periodicFlush: 100 });
}

const SECRET_NAMES: ReadonlySet<string> = new Set([
  ...AUTH_SECRETS,
  'authorization',
  'x-api-key',
  'secret',
  'accessToken',
  'payload',
  'cookie',
  'set-cookie',
  'token',
]);
const SHOWN_LEVELS = 4;

/** pino's `redact` does the same by paths and took 3.5 % of the CPU of the gateway (docs/performance.md). */
function shownFields(fields: object, levels = SHOWN_LEVELS): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields) as [string, unknown][]) {
    shown[name] = SECRET_NAMES.has(name) ? '[redacted]' : shownValue(value, levels - 1);
  }
  return shown;
}

function shownValue(value: unknown, levels: number): unknown {
  if (value === null || typeof value !== 'object' || 'toJSON' in value) return value;
  if (value instanceof Error) return shownError(value);
  if (levels === 0) return '[nested too deep]';
  if (Array.isArray(value)) return value.map((each) => shownValue(each, levels - 1));
  return shownFields(value, levels);
}

/** Keeps only fields known to be harmless: other fields of a driver's error hold whole documents. */
function shownError(error: Error): object {
  const code = 'code' in error ? String(error.code) : undefined;
  return { type: error.name, message: error.message, code, stack: error.stack };
}
