import { describe, expect, test } from '@jest/globals';
import { parseHosts, readSystemNames } from './hosts-file.ts';

describe('the hosts file', () => {
  test('gives every name of a line its address, in lower case', () => {
    const byName = parseHosts(
      '127.0.0.1\tlocalhost Hook.Example.com\n::1 localhost ip6-localhost\n',
    );
    expect([...byName]).toEqual([
      ['localhost', ['127.0.0.1', '::1']],
      ['hook.example.com', ['127.0.0.1']],
      ['ip6-localhost', ['::1']],
    ]);
  });

  test.each([
    ['a comment', '# 10.0.0.1 hook.example.com\n10.0.0.1 # hook.example.com'],
    [
      'a line that does not begin with an address',
      'hook.example.com 10.0.0.1\n300.1.1.1 hook.example.com',
    ],
    ['a link-local address with its zone', 'fe80::1%lo0 hook.example.com'],
    ['an empty line', '\n \r\n'],
  ])('has no address for a name in %s', (_what, text) => {
    expect(parseHosts(text).has('hook.example.com')).toBe(false);
  });

  test('may be missing', async () => {
    const names = await readSystemNames('/nonexistent/hosts');
    expect(names.hostsFile.size).toBe(0);
  });
});
