import { pino, type Logger } from 'pino';

export type { Logger } from 'pino';

/** One JSON line per entry on standard output. What could hold a secret is cut out by name. */
export function createLogger(service: string, level: string): Logger {
  return pino({
    level,
    base: { service },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: shownError },
    redact: {
      paths: SECRET_NAMES.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
      censor: '[redacted]',
    },
  });
}

const SECRET_NAMES = ['authorization', 'secret', 'hmacSecret', 'apiKey', 'password', 'payload'];

/** Only what is known to be harmless: a driver's error carries whole documents in further fields. */
function shownError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const code = 'code' in error ? String(error.code) : undefined;
  return { type: error.name, message: error.message, code, stack: error.stack };
}
