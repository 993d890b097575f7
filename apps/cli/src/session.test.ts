import { expect, it } from '@jest/globals';
import manifest from '../package.json' with { type: 'json' };
import { startApi } from '../../../test/support/cli/answering-api.ts';
import { runIn } from '../../../test/support/cli/printing-world.ts';
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

it('sends its version as User-Agent with each request, unless there is another one', async () => {
  const { url, agents, server } = await startApi({ id: 'app_1' });
  const env = { POSTHORN_URL: url };
  const own = `posthorn-cli/${manifest.version}`;
  await runIn(['app', 'list'], env);
  await runIn(['api', 'GET', '/apps'], env);
  await runIn(['api', 'GET', '/apps', '--header', 'User-Agent: shop/1'], env);
  server.close();
  expect(agents).toEqual([own, own, 'shop/1']);
});
