import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  InvalidJsonError,
  parseJsonObject,
  splitJsonLists,
  TooManyMembersError,
} from './parse-json-object.ts';

const DEPTH = 64;
const read = (text: string) => parseJsonObject(text, DEPTH);
const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

const space = fc.string({ unit: fc.constantFrom(' ', '\n', '\t', '\r'), maxLength: 3 });
const delimiters = fc.string({
  unit: fc.constantFrom('"', '\\', '{', '}', '[', ',', ':', 'a', 'é', '😀'),
});
const key = fc.oneof(
  delimiters,
  fc.string({ unit: 'binary' }),
  fc.constantFrom('__proto__', 'payload'),
);
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  delimiters,
  fc.record({ [`"}`]: delimiters }),
);
const members = fc.uniqueArray(
  fc.record({ key, value, indent: space, spaces: fc.tuple(space, space, space, space) }),
  { selector: (member) => member.key, maxLength: 8 },
);

interface Member {
  key: string;
  value: unknown;
  indent: string;
  spaces: readonly [string, string, string, string];
}

/** Returns the text of the object and of each member's value. */
function write(list: readonly Member[], around: string) {
  const texts = list.map((member) => JSON.stringify(member.value, null, member.indent));
  const parts = list.map(
    ({ key: name, spaces: [a, b, c, d] }, index) =>
      `${a}${JSON.stringify(name)}${b}:${c}${texts[index] ?? ''}${d}`,
  );
  return { text: `${around}{${parts.join(',')}}${around}`, texts };
}

describe('parsing a JSON object', () => {
  test('returns every value exactly as it was written, whatever the object and its whitespace', () => {
    fc.assert(
      fc.property(members, space, (list, around) => {
        const { text, texts } = write(list, around);
        const object = read(text);
        expect(object.value).toEqual(JSON.parse(text));
        // Not read from the parsed object: V8 13.6 can confuse keys with backslashes (nodejs/node#63785).
        list.forEach((member, index) => {
          expect(object.textOf(member.key)).toBe(texts[index]);
        });
      }),
      { numRuns: 500 },
    );
  });

  test('throws InvalidJsonError for what JSON.parse refuses and for what is not an object', () => {
    fc.assert(
      fc.property(fc.oneof(delimiters, fc.json(), fc.string()), (text) => {
        try {
          read(text);
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidJsonError);
        }
      }),
    );
  });

  test.each([
    '12345678901234567890',
    '1e400',
    '-0',
    '1.10',
    '"\\u0041\\/\\ud83d"',
    '"}{][,:\\"\\\\"',
    '"\\\\"',
    '{"b" : 1 , "a":[ ]}',
  ])('keeps %s as it is written', (written) => {
    expect(read(`{"a":1,"payload": ${written} ,"z":null}`).textOf('payload')).toBe(written);
  });

  test('finds a key that is written with escapes', () => {
    expect(read('{"\\u0070ayload":{"a":1}}').textOf('payload')).toBe('{"a":1}');
  });

  test('finds keys that are quotes and backslashes', () => {
    const object = read('{"a":0,"\\\\":1,"\\"":2,"\\\\\\"":3}');
    expect(['\\', '"', '\\"'].map((name) => object.textOf(name))).toEqual(['1', '2', '3']);
  });

  test('returns undefined for a member that is absent or nested', () => {
    const object = read('{"a":{"payload":1}}');
    expect(object.textOf('payload')).toBeUndefined();
    expect(object.textOf('toString')).toBeUndefined();
  });

  test('keeps __proto__ as a member like any other', () => {
    const object = read('{"__proto__":{"polluted":true}}');
    expect(object.textOf('__proto__')).toBe('{"polluted":true}');
    expect('polluted' in {}).toBe(false);
  });

  test.each(['{"a":1,"a":1}', '{"a":1,"b":2,"\\u0061":3}', '{"__proto__":1,"__proto__":2}'])(
    'refuses the repeated key of %s',
    (text) => {
      expect(() => read(text)).toThrow(/is given twice/);
    },
  );

  test('allows 64 levels inside a member and refuses 65', () => {
    expect(read(`{"payload":${nested(64)}}`).textOf('payload')).toBe(nested(64));
    expect(() => read(`{"payload":${nested(65)}}`)).toThrow('nested deeper than 64 levels');
    expect(() => read(`{"payload":${'{"a":'.repeat(65)}1${'}'.repeat(66)}`)).toThrow(
      InvalidJsonError,
    );
  });

  test('refuses hostile nesting before parsing', () => {
    expect(() => read(`{"a":${'['.repeat(200_000)}`)).toThrow('nested deeper than 64 levels');
  });

  test('does not count brackets in strings as nesting', () => {
    expect(read(`{"payload":"${'['.repeat(100)}"}`).textOf('payload')).toHaveLength(102);
  });

  test.each([
    '',
    ' ',
    '{',
    '{"a":}',
    "{'a':1}",
    '{"a":1,}',
    '{"a":1}{}',
    '{"a":NaN}',
    '{"a":"\n"}',
  ])('refuses %j as not JSON', (text) => {
    expect(() => read(text)).toThrow('not valid JSON');
  });

  test.each(['null', '1', '"text"', 'true', '[]', '[{"a":1}]'])(
    'refuses %s because it is not an object',
    (text) => {
      expect(() => read(text)).toThrow('must be a JSON object');
    },
  );
});

describe('a duplicate key', () => {
  test.each([
    '{"a":{"k":1,"k":2}}',
    '{"a":[{"k":1},{"x":{"k":1,"\\u006b":2}}]}',
    '{"payload":{},"a":[[{"k":[1],"k":"}"}]]}',
  ])('is found in objects at any depth: %s', (text) => {
    expect(() => parseJsonObject(text, DEPTH, 'payload')).toThrow('key "k" is given twice in a');
  });

  test.each([
    '{"payload":{"k":1,"k":2}}',
    '{"payload":[{"k":{"k":1,"k":1}}]}',
    '{"a":[{"k":1},{"k":1}],"b":{"k":{"k":"k"}}}',
    '{"a":"{\\"k\\":1,\\"k\\":2}"}',
  ])('is allowed inside the untouched member and in different objects: %s', (text) => {
    expect(() => parseJsonObject(text, DEPTH, 'payload')).not.toThrow();
  });
});

describe('the entries of a list', () => {
  const split = (text: string, most = 100) => {
    const { frame, entries } = splitJsonLists(Buffer.from(text), most);
    return { frame: frame.toString(), entries: entries.map(String) };
  };
  const isJson = (text: string): boolean => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  };

  test('are cut out byte for byte without the spaces around them, whatever is in them', () => {
    const list = fc.array(fc.tuple(value, space, space), { maxLength: 8 });
    fc.assert(
      fc.property(list, space, (entries, gap) => {
        const texts = entries.map(([each]) => JSON.stringify(each));
        const spaced = entries.map(([, a, b], n) => a + (texts[n] ?? '') + b);
        const text = `{${gap}"messages"${gap}:[${texts.length === 0 ? gap : spaced.join()}]${gap}}`;
        const found = split(text);
        expect(found.entries).toEqual(texts);
        expect(JSON.parse(found.frame)).toEqual({ messages: texts.map(() => 0) });
      }),
    );
  });

  test('are valid with the frame only where the whole text is valid', () => {
    const broken = fc
      .tuple(
        fc.string({
          unit: fc.constantFrom('{', '}', '[', ']', '"', ',', ':', '0', '\\', ' ', 'a'),
        }),
        fc.nat({ max: 40 }),
        fc.nat({ max: 3 }),
      )
      .map(([junk, at, cut]) => {
        const text = '{"messages":[{"a":[1,"]"]},{"b":{}}, {}]}';
        return text.slice(0, at) + junk + text.slice(at + cut);
      });
    fc.assert(
      fc.property(broken, (text) => {
        const { frame, entries } = split(text);
        const isAccepted = isJson(frame) && entries.every(isJson);
        const { messages } = isJson(frame) ? (JSON.parse(frame) as { messages?: unknown }) : {};
        if (isAccepted && Array.isArray(messages)) expect(isJson(text)).toBe(true);
      }),
      { numRuns: 5_000 },
    );
  });

  test('leave nothing of an object in the frame, and end after one too many', () => {
    expect(split('{"messages":{"a":[1,2]},"b":"[,]"}')).toEqual({
      frame: '{"messages":{},"b":"[,]"}',
      entries: [],
    });
    expect(split('{"messages":[1,2,3,4,5]}', 2).entries).toEqual(['1', '2', '3']);
  });

  test.each([
    ['{', '"a":[],', '}', TooManyMembersError],
    ['{', '"a":{},', '}', TooManyMembersError],
    ['{', '[]', '}', TooManyMembersError],
    ['[', '[],', ']', InvalidJsonError],
    ['[', '{},', ']', InvalidJsonError],
  ])('are refused in %s with more than 100 times %s', (open, member, end, refusal) => {
    expect(() => split(open + member.repeat(100) + end)).not.toThrow();
    expect(() => split(open + member.repeat(101) + end)).toThrow(refusal);
  });
});
