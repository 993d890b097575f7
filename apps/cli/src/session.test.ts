import { expect, it } from '@jest/globals';
import { createProgram } from './program.ts';
import { withoutSecrets, type World } from './session.ts';

it('shows the request of a dry run without its secrets', () => {
  const payload = { secret: 'of the payload' };
  const body = {
    url: 'https://example.com',
    secret: 'whsec_1',
    hmacSecret: null,
    payload,
    customHeaders: [{ key: 'X-Tenant', value: 'Bearer 1' }],
    tls: { certificate: 'public', key: 'private' },
  };
  expect(JSON.parse(withoutSecrets(JSON.stringify(body)))).toEqual({
    ...body,
    secret: '********',
    customHeaders: [{ key: 'X-Tenant', value: '********' }],
    tls: { certificate: 'public', key: '********' },
  });
  const withoutAny = '{"customHeaders":null,"tls":null,"payload": {"n":1.0,\n "n":2e0},"a":[1.50]}';
  expect(withoutSecrets(withoutAny)).toBe(withoutAny.replace('payload": ', 'payload":'));
});

it('has no option for every command that a command has too: commander would read the wrong one', () => {
  const program = createProgram({} as World);
  const everywhere = program.options.map(({ long }) => long);
  const own = program.commands
    .flatMap((each) => [each, ...each.commands])
    .flatMap(({ options }) => options.map(({ long }) => long));
  expect(own.filter((long) => everywhere.includes(long))).toEqual([]);
});
