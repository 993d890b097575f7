import { describe, expect, test } from '@jest/globals';
import { createLogger } from './logger.ts';

function logged(write: (logger: ReturnType<typeof createLogger>) => void): unknown {
  const lines: string[] = [];
  write(createLogger('gateway', 'info', { write: (line) => lines.push(line) }));
  return JSON.parse(lines.join(''));
}

describe('the log', () => {
  test('has the service, the name of the level, the fields and the text', () => {
    expect(
      logged((logger) => {
        logger.info({ messageId: 'msg_1', tries: 2 }, 'message accepted');
      }),
    ).toMatchObject({
      level: 'info',
      service: 'gateway',
      messageId: 'msg_1',
      tries: 2,
      msg: 'message accepted',
    });
  });

  test('never shows a field named like a secret, however deep', () => {
    const webhook = { secret: 'whsec_a', auth: { hmacSecret: 'b', password: 'c' } };
    const request = { basicAuthPassword: 'f', basicAuthUsername: 'shop' };
    const line = logged((logger) => {
      logger.info({ apiKey: 'd', payload: { e: 1 }, webhooks: [webhook], webhook, request });
    });
    const shown = {
      secret: '[redacted]',
      auth: { hmacSecret: '[redacted]', password: '[redacted]' },
    };
    expect(line).toMatchObject({
      apiKey: '[redacted]',
      payload: '[redacted]',
      webhooks: [shown],
      webhook: shown,
      request: { basicAuthPassword: '[redacted]', basicAuthUsername: 'shop' },
    });
  });

  test('cuts off fields deeper than its limit', () => {
    const line = logged((logger) => {
      logger.info({ a: { b: { c: { d: { secret: 'x' } } } } });
    });
    expect(JSON.stringify(line)).not.toContain('secret');
  });

  test('shows only harmless fields of an error, under any name and alone', () => {
    const error = Object.assign(new TypeError('refused'), {
      code: 121,
      document: { payload: 'x' },
    });
    const shown = { type: 'TypeError', message: 'refused', code: '121', stack: error.stack };
    expect(
      logged((logger) => {
        logger.warn({ err: error, cause: error });
      }),
    ).toMatchObject({ err: shown, cause: shown });
    const alone = logged((logger) => {
      logger.warn(error);
    });
    expect(alone).toMatchObject({ err: shown, msg: 'refused' });
    expect(JSON.stringify(alone)).not.toContain('document');
  });

  test('leaves dates unchanged', () => {
    const at = new Date(0);
    expect(
      logged((logger) => {
        logger.info({ at });
      }),
    ).toMatchObject({ at: at.toISOString() });
  });
});
