import { describe, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { parseConfig } from './config.ts';
import { StartupError } from './errors.ts';
import { settings } from './settings.ts';

const schema = z.object({ ...settings.kafka, ...settings.mongodb, ...settings.process(9_999) });
const required = {
  KAFKA_BROKERS: 'kafka-1:9092, kafka-2:9092',
  MONGODB_URL: 'mongodb://db/posthorn',
};

const parse = (env: NodeJS.ProcessEnv) => parseConfig('gateway', schema, env);

function refusalOf(env: NodeJS.ProcessEnv): string {
  try {
    parse(env);
  } catch (error) {
    if (error instanceof StartupError) return error.message;
    throw error;
  }
  throw new Error('the settings were taken');
}

function withFile<T>(text: string, use: (path: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-config-'));
  try {
    writeFileSync(join(folder, 'value'), text);
    return use(join(folder, 'value'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('the settings', () => {
  test('are read with their defaults', () => {
    const config = parse(required);
    expect(config.KAFKA_BROKERS).toEqual(['kafka-1:9092', 'kafka-2:9092']);
    expect(config).toMatchObject({ OPS_PORT: 9_999, LOG_LEVEL: 'info', TOPIC_PREFIX: 'posthorn.' });
    expect(config.RETRY_DELAYS).toHaveLength(6);
    expect(config.DEFERRAL_DELAYS).toHaveLength(8);
  });

  test('that are empty take the default, and are missing where there is none', () => {
    expect(parse({ ...required, OPS_PORT: '', RETRY_DELAYS: '' }).OPS_PORT).toBe(9_999);
    expect(refusalOf({ ...required, MONGODB_URL: '' })).toContain(
      'MONGODB_URL: is required and not set',
    );
  });

  test('that are wrong are all listed at once', () => {
    const lines = refusalOf({ KAFKA_BROKERS: 'kafka', OPS_PORT: '70000', LOG_LEVEL: 'loud' }).split(
      '\n',
    );
    expect(lines[0]).toBe('Posthorn gateway cannot start, these settings are wrong:');
    const names = lines.slice(1, -1).map((line) => line.trim().split(':')[0]);
    expect(names.sort()).toEqual(['KAFKA_BROKERS', 'LOG_LEVEL', 'MONGODB_URL', 'OPS_PORT']);
  });

  test.each([
    ['MONGODB_URL', 'postgres://user:hush@db/x'],
    ['KAFKA_BROKERS', 'hush'],
    ['LOG_LEVEL', 'hush'],
    ['OPS_PORT', 'hush'],
    ['RETRY_DELAYS', '5s,hush'],
    ['DEFERRAL_DELAYS', '5s,hush'],
    ['TOPIC_PREFIX', 'hush hush'],
  ])('never show the value of a wrong %s', (name, value) => {
    const refusal = refusalOf({ ...required, [name]: value });
    expect(refusal).toContain(`  ${name}: `);
    expect(refusal).not.toContain('hush');
  });

  test('may be in a file, which takes precedence over the variable itself', () => {
    withFile('mongodb://from-file/posthorn\n', (path) => {
      const config = parse({ ...required, MONGODB_URL: 'mongodb://env/x', MONGODB_URL_FILE: path });
      expect(config.MONGODB_URL).toBe('mongodb://from-file/posthorn');
    });
  });

  test('settings in a file are listed without their value when they are wrong', () => {
    withFile('hush', (path) => {
      const refusal = refusalOf({ ...required, MONGODB_URL_FILE: path });
      expect(refusal).toContain('MONGODB_URL: must be a mongodb://');
      expect(refusal).not.toContain('hush');
    });
  });

  test('settings in a file that cannot be read are reported by name', () => {
    expect(refusalOf({ ...required, MONGODB_URL_FILE: '/nowhere/hush' })).toBe(
      'MONGODB_URL_FILE names a file that cannot be read; correct the path.',
    );
  });

  test('of other programs are ignored', () => {
    expect(parse({ ...required, PATH: '/bin' })).not.toHaveProperty('PATH');
  });
});

describe('an allowed range', () => {
  const egress = z.object(settings.egress);
  const open = (ranges: string) =>
    parseConfig('dispatcher', egress, { EGRESS_ALLOW_CIDRS: ranges });

  test('may be one of several', () => {
    expect(open('10.0.0.0/8, fd00::/8').EGRESS_ALLOW_CIDRS).toHaveLength(2);
    expect(parseConfig('dispatcher', egress, {}).EGRESS_ALLOW_CIDRS).toBeUndefined();
  });

  test.each(['10.0.0.1/8', '10.0.0.0', '10.0.0.0/8,', 'all'])('is not %s', (ranges) => {
    expect(() => open(ranges)).toThrow(StartupError);
  });

  test.each(['yes', '1', 'TRUE', ' true'])('is no switch: %j is neither true nor false', (text) => {
    expect(() => parseConfig('dispatcher', egress, { EGRESS_ALLOW_LOOPBACK: text })).toThrow(
      'EGRESS_ALLOW_LOOPBACK: must be true or false',
    );
  });
});
