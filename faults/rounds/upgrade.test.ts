import { expect, test } from '@jest/globals';
import { BEFORE_THE_FIRST_TAG, olderVersion } from './upgrade.ts';

test.each([
  ['what the command line names', 'abc123', 'v1.0.0', 'abc123'],
  ['the last tag', undefined, 'v1.0.0', 'v1.0.0'],
  ['a fixed commit while there is no tag', undefined, null, BEFORE_THE_FIRST_TAG],
])('an upgrade begins from %s', (_what, against, tag, reference) => {
  expect(olderVersion(against, tag).reference).toBe(reference);
});
