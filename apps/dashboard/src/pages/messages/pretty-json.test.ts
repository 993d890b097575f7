import { describe, expect, it } from '@jest/globals';
import { pretty } from './pretty-json.ts';

describe('pretty', () => {
  it('puts each member on a line of its own', () => {
    expect(pretty('{"a":1,"b":[true,null],"c":{"d":"e"}}')).toBe(
      '{\n  "a": 1,\n  "b": [\n    true,\n    null\n  ],\n  "c": {\n    "d": "e"\n  }\n}',
    );
  });

  it('changes no value: numbers beyond 2^53, spaces and brackets in text, escapes', () => {
    const values = '"big": 12345678901234567890,\n  "text": "a  {[,:]} \\"b\\" \\\\"';
    expect(pretty(`{"big" : 12345678901234567890, "text":"a  {[,:]} \\"b\\" \\\\"}`)).toBe(
      `{\n  ${values}\n}`,
    );
  });

  it('keeps empty objects and lists together', () => {
    expect(pretty('{"a":{},"b":[ ]}')).toBe('{\n  "a": {},\n  "b": [ ]\n}');
  });
});
