import { describe, expect, test } from '@jest/globals';
import { moduleOf, summarize } from './profiles.ts';

function node(id: number, functionName: string, url: string, lineNumber = 0) {
  return { id, callFrame: { functionName, url, lineNumber } };
}

describe('the summary of a profile', () => {
  const profile = {
    nodes: [
      node(1, '(idle)', ''),
      node(2, 'accept', 'file:///x/services/gateway/src/accept/accept-message.ts', 9),
      node(3, 'accept', 'file:///x/services/gateway/src/accept/accept-message.ts', 9),
      node(4, 'write', 'node:net', 0),
    ],
    samples: [1, 2, 3, 4, 1],
    timeDeltas: [0, 9_000, 2_000, 4_000, 2_000],
  };

  test('sums the time of a function over all its callers, without idle time', () => {
    expect(summarize(profile, 10).functions).toEqual([
      { name: 'accept  services/gateway/src/accept/accept-message.ts:10', share: 75, selfMs: 6 },
      { name: 'write  node:net:1', share: 25, selfMs: 2 },
    ]);
  });

  test('keeps only the highest, and sums by module', () => {
    expect(summarize(profile, 1).modules).toEqual([
      { name: 'services/gateway/src/accept/accept-message.ts', share: 75, selfMs: 6 },
    ]);
  });
});

test.each([
  ['file:///x/node_modules/kafkajs/src/index.js', 'a', 'kafkajs'],
  ['file:///x/node_modules/@node-rs/crc32/index.js', 'a', '@node-rs/crc32'],
  ['file:///x/node_modules/a/node_modules/b/index.js', 'a', 'b'],
  ['file:///x/libs/domain/src/ids.ts', 'a', 'libs/domain/src/ids.ts'],
  ['node:internal/streams', 'a', 'node:internal/streams'],
  ['', '(garbage collector)', '(garbage collector)'],
  ['', 'writev', 'native code'],
])('the module of %s is named without a folder of this machine', (url, functionName, module) => {
  expect(moduleOf(url, functionName)).toBe(module);
});
