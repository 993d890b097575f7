import { describe, expect, test } from '@jest/globals';
import { traceparentOf } from './traceparent.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

describe('a traceparent', () => {
  test('is passed on as it came', () => {
    expect(traceparentOf(`00-${TRACE}-${SPAN}-01`)).toBe(`00-${TRACE}-${SPAN}-01`);
  });

  test.each([
    ['there is none', undefined],
    ['its trace is all zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['its span is all zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['a header would be smuggled in with it', `00-${TRACE}-${SPAN}-01\r\nx: y`],
    ['it is of another version', `01-${TRACE}-${SPAN}-01`],
  ])('is ignored when %s', (_what, text) => {
    expect(traceparentOf(text)).toBeUndefined();
  });
});
