import { describe, expect, test } from '@jest/globals';
import { traceparentOf } from './traceparent.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const IDS = `${TRACE}-${SPAN}`;

describe('a traceparent', () => {
  test.each(['00', '01', '03', 'ff'])('is passed on as it came with the flags %s', (flags) => {
    expect(traceparentOf(`00-${IDS}-${flags}`)).toBe(`00-${IDS}-${flags}`);
  });

  test.each([
    ['01', `01-${IDS}-01`, '01'],
    ['fe', `fe-${IDS}-00`, '00'],
    ['cc with more fields', `cc-${IDS}-01-what-comes`, '01'],
    ['cc with an empty field', `cc-${IDS}-01-`, '01'],
    ['01 with flags that are not known yet', `01-${IDS}-fe`, '00'],
    ['01 with these and the sampled flag', `01-${IDS}-8b`, '01'],
  ])('of version %s is passed on as version 00', (_what, text, flags) => {
    expect(traceparentOf(text)).toBe(`00-${IDS}-${flags}`);
  });

  test.each([
    ['there is none', undefined],
    ['its trace is all zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['its span is all zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['its trace is all zeros in a later version', `01-${'0'.repeat(32)}-${SPAN}-01`],
    ['a header would be smuggled in with it', `00-${IDS}-01\r\nx: y`],
    ['a header would be smuggled in behind a later version', `01-${IDS}-01-a\r\nx: y`],
    ['version 00 has more fields', `00-${IDS}-01-extra`],
    ['version 00 ends with a hyphen', `00-${IDS}-01-`],
    ['its version is the forbidden one', `ff-${IDS}-01`],
    ['a later version does not separate its next field', `01-${IDS}-011`],
    ['a later version is cut off', `01-${IDS}`],
    ['it is in upper case', `00-${IDS.toUpperCase()}-01`],
  ])('is ignored when %s', (_what, text) => {
    expect(traceparentOf(text)).toBeUndefined();
  });
});
