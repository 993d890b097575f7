import { describe, expect, it } from '@jest/globals';
import { APP_RULES, WEBHOOK_RULES } from '@posthorn/client/rules';
import { fieldsWith, parseCount, parseEach, parseSeconds, requireFields } from './options.ts';

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
