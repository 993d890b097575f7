import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Readable } from 'node:stream';
import { type Line, MAX_LINE_BYTES, rawFieldOf, readLines } from './read-lines.ts';

/** Reads lines whose bytes come in pieces of this size. */
async function linesOf(bytes: Buffer, pieceBytes: number): Promise<Line[]> {
  const pieces = Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, index) =>
    bytes.subarray(index * pieceBytes, (index + 1) * pieceBytes),
  );
  return Array.fromAsync(readLines(Readable.from(pieces)));
}

const withoutMark = (text: string): string => text.replace(/^\uFEFF/, '');

describe('the lines of an input', () => {
  it('keep their text and number, wherever the input is cut', async () => {
    const line = fc.string({ unit: 'binary' }).map((text) => text.replaceAll(/[\r\n]/g, ''));
    await fc.assert(
      fc.asyncProperty(
        fc.array(line),
        fc.integer({ min: 1, max: 9 }),
        async (lines, pieceBytes) => {
          const read = await linesOf(Buffer.from(lines.join('\n')), pieceBytes);
          const expected = lines.flatMap((text, index) =>
            withoutMark(text) === '' ? [] : [{ number: index + 1, text: withoutMark(text) }],
          );
          expect(read).toEqual(expected);
        },
      ),
    );
  });

  it('may end in CR LF, and a last one needs no end', async () => {
    const read = await linesOf(Buffer.from('{"a":1}\r\n\r\n{"b":2}'), 3);
    expect(read).toEqual([
      { number: 1, text: '{"a":1}' },
      { number: 3, text: '{"b":2}' },
    ]);
  });

  it('have no byte-order mark, which files of Windows begin with', async () => {
    for (const pieceBytes of [1, 2, 64]) {
      const files = Buffer.from('\uFEFF{"a":1}\r\n\uFEFF{"b":2}\n\uFEFF');
      const lines = [
        { number: 1, text: '{"a":1}' },
        { number: 2, text: '{"b":2}' },
      ];
      expect(await linesOf(files, pieceBytes)).toEqual(lines);
    }
  });

  it('of UTF-16 are named', async () => {
    const [line] = await linesOf(Buffer.from('\uFEFF{}\n', 'utf16le'), 64);
    expect(line).toMatchObject({ problem: expect.stringContaining('is UTF-16') });
  });

  it('that are too long or not UTF-8 are named, and the next one is read', async () => {
    const long = Buffer.alloc(MAX_LINE_BYTES + 1, 'x');
    const bytes = Buffer.concat([
      long,
      Buffer.from('\n'),
      Buffer.from([0xff]),
      Buffer.from('\n{}'),
    ]);
    expect(await linesOf(bytes, 65_536)).toEqual([
      { number: 1, problem: expect.stringContaining('longer than') },
      { number: 2, problem: 'The line is not UTF-8' },
      { number: 3, text: '{}' },
    ]);
  });
});

describe('the text of a field', () => {
  it('is the value that JSON.parse finds, for any object and any spacing', () => {
    const objects = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue());
    fc.assert(
      fc.property(objects, fc.constantFrom(0, 1, 2), fc.jsonValue(), (object, spaces, payload) => {
        const json = JSON.stringify({ ...object, payload }, null, spaces);
        const found = rawFieldOf(json, 'payload') ?? '';
        expect(json).toContain(found);
        expect(JSON.parse(found)).toEqual(JSON.parse(JSON.stringify(payload)));
      }),
    );
  });

  it.each([
    ['{"payload":{"n":1.0}}', '{"n":1.0}'],
    ['{"payload" : {"payload":2} , "a":1}', '{"payload":2}'],
    ['{"payload":1,"payload":2.0}', '2.0'],
    ['{"a":{"payload":1}}', undefined],
    ['{"p\\u0061yload":3e2}', '3e2'],
    ['{}', undefined],
  ])('of %s is %s', (json, text) => {
    expect(rawFieldOf(json, 'payload')).toBe(text);
  });
});
