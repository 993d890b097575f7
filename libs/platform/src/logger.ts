import { pino, type Logger } from 'pino';

export type { Logger } from 'pino';

/** One JSON line per entry on standard output. What could hold a secret is cut out by name. */
export function createLogger(service: string, level: string): Logger {
  return pino({
    level,
    base: { service },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: {
      paths: SECRET_NAMES.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
      censor: '[redacted]',
    },
  });
}

const SECRET_NAMES = ['authorization', 'secret', 'hmacSecret', 'apiKey', 'password', 'payload'];
