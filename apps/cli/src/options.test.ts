import { describe, expect, it } from '@jest/globals';
import { APP_RULES, WEBHOOK_RULES } from '@posthorn/client/rules';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { runIn } from '../../../test/support/cli/printing-world.ts';
import {
  fieldsWith,
  parseCount,
  parseDate,
  parseEach,
  parseFutureTime,
  parseGivenTime,
  parseJson,
  parsePastTime,
  parseSeconds,
  requireFields,
} from './options.ts';

describe('the options of fields', () => {
  it('have choices, parser, need and secrecy of the rules of the API', () => {
    const fields = fieldsWith(WEBHOOK_RULES, [
      { flags: '--url <url>', help: 'address' },
      { flags: '--signature-headers <names>', help: 'headers' },
      { flags: '--api-key', help: 'key' },
      { flags: '--max-attempts <count>', help: 'attempts' },
      { flags: '--attempt-timeout <time>', name: 'timeoutSeconds', help: '', parse: parseSeconds },
    ]);
    expect(fields).toMatchObject([
      { required: true, secret: false, choices: undefined },
      { required: false, parse: parseEach, choices: WEBHOOK_RULES.signatureHeaders.entry.choices },
      { required: false, secret: true },
      { parse: parseCount },
      { parse: parseSeconds },
    ]);
  });

  it('are needed where the API requires the field', () => {
    const fields = fieldsWith(APP_RULES, [
      { flags: '--name <name>', help: 'name' },
      { flags: '--project <id>', name: 'projectId', help: 'project' },
      { flags: '--uid <uid>', help: 'uid' },
    ]);
    expect(() => {
      requireFields(fields, {});
    }).toThrow('Set --name <name> and --project <id>');
  });

  it('belong to fields of the API', () => {
    expect(() => fieldsWith(APP_RULES, [{ flags: '--colour <name>', help: 'none' }])).toThrow(
      'no field of the API belongs to --colour <name>',
    );
  });
});

describe('a JSON object', () => {
  it('is written, or read from a file', () => {
    expect(parseJson('{"tags":"eu"}')).toEqual({ tags: 'eu' });
    const manifest = join(import.meta.dirname, '../package.json');
    expect(parseJson(`@${manifest}`)).toMatchObject({ type: 'module' });
  });

  it.each(['', '[]', 'null', '1', '{', 'tags=eu'])('is not %j', (text) => {
    expect(() => parseJson(text)).toThrow('Expected a JSON object, or @ and a file with one.');
  });

  it('says which file cannot be read', () => {
    expect(() => parseJson('@none.json')).toThrow('none.json: there is no such file');
  });
});

describe('a time', () => {
  it.each([
    ['2026-03-02', '2026-03-02T00:00:00.000Z'],
    ['2026-03-02T00:00:00', '2026-03-02T00:00:00.000Z'],
    ['2026-03-02 09:30', '2026-03-02T09:30:00.000Z'],
    ['2026-03-02t09:30:15.25z', '2026-03-02T09:30:15.250Z'],
    ['2026-03-02T09:30:00+05:45', '2026-03-02T03:45:00.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
  ])('is of UTC unless it has a zone: %s', (text, time) => {
    expect(parsePastTime(text)).toBe(time);
    expect(parseGivenTime(text)).toEqual({ at: time, isRelative: false });
  });

  it.each([
    '2026-02-30',
    '2026-02-29T10:00:00Z',
    '2026-11-31T10:00:00+01:00',
    '2026-13-01',
    '2026-01-31T25:00',
    '2026-01-31T10:00:00 CET',
    '2026-01-31Z',
    '2026-01-31 Feb',
  ])('is never another one than was written: %s', (text) => {
    expect(() => parsePastTime(text)).toThrow('Expected a time');
    expect(() => parseDate(text)).toThrow('Expected a time');
  });

  it('may be a duration', () => {
    const [from, to] = [parsePastTime('2h'), parseFutureTime('2h')].map((text) => Date.parse(text));
    expect(Number(to) - Number(from)).toBeGreaterThanOrEqual(4 * 3_600_000);
    expect(() => parseFutureTime(`${'9'.repeat(20)}d`)).toThrow('Expected a time');
  });

  it.each(['UTC', 'Asia/Kathmandu'])('of a signature is the same in the zone %s', (zone) => {
    const program = join(import.meta.dirname, 'main.ts');
    const sign = [program, 'signature', 'sign', '--secret-env', 'S', '--timestamp'];
    const env = { ...process.env, NODE_OPTIONS: '', TZ: zone, S: `whsec_${'A'.repeat(32)}` };
    const run = (time: string) =>
      spawnSync(process.execPath, [...sign, time], { env, input: '{}', encoding: 'utf8' });
    const { stdout } = run('2026-03-02T09:30:00');
    expect(stdout).toContain(String(Date.UTC(2026, 2, 2, 9, 30) / 1_000));
    expect(run('2026-02-30').status).toBe(2);
  });

  it('without a zone is explained by the help of each command', async () => {
    expect((await runIn(['message', 'list', '--help'])).out).toContain('without a zone is of UTC');
  });
});
