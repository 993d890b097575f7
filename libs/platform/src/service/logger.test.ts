import { describe, expect, test } from '@jest/globals';
import { createLogger } from './logger.ts';

function logged(write: (logger: ReturnType<typeof createLogger>) => void): unknown {
  const lines: string[] = [];
  write(createLogger('gateway', 'info', { write: (line) => lines.push(line) }));
  return JSON.parse(lines.join(''));
}

describe('the log', () => {
  test('has the service, the level by name, the fields and the text', () => {
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

  test('never shows what is named like a secret, however deep it lies', () => {
    const webhook = { secret: 'whsec_a', auth: { hmacSecret: 'b', password: 'c' } };
    const line = logged((logger) => {
      logger.info({ apiKey: 'd', payload: { e: 1 }, webhooks: [webhook], webhook });
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
    });
  });

  test('cuts off what lies deeper than it looks', () => {
    const line = logged((logger) => {
      logger.info({ a: { b: { c: { d: { secret: 'x' } } } } });
    });
    expect(JSON.stringify(line)).not.toContain('secret');
  });

  test('shows of an error what is known to be harmless, under every name and alone', () => {
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

  test('leaves times as they are', () => {
    const at = new Date(0);
    expect(
      logged((logger) => {
        logger.info({ at });
      }),
    ).toMatchObject({ at: at.toISOString() });
  });
});
