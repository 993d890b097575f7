import { describe, expect, test } from '@jest/globals';
import { parseHosts, readMachineNames } from './hosts-file.ts';

describe('the hosts file', () => {
  test('gives every name of a line its address, whatever its case', () => {
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
    ['what is no address', 'hook.example.com 10.0.0.1\n300.1.1.1 hook.example.com'],
    ['a link-local address with its zone', 'fe80::1%lo0 hook.example.com'],
    ['nothing', '\n \r\n'],
  ])('says nothing by %s', (_what, text) => {
    expect(parseHosts(text).has('hook.example.com')).toBe(false);
  });

  test('may be missing', async () => {
    const names = await readMachineNames('/nonexistent/hosts');
    expect(names.listed.size).toBe(0);
  });
});
