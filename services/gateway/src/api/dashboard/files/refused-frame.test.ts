import { describe, expect, test } from '@jest/globals';
import { isRefusedFrame, refusedFrame } from './refused-frame.ts';

const LISTED = ['https://app.example.com'];

describe('a frame', () => {
  test.each([
    ['of an origin that is not listed', 'iframe', 'https://evil.example/page', LISTED, true],
    ['of a listed origin', 'iframe', 'https://app.example.com/', LISTED, false],
    [
      'of a listed origin with the port of its scheme',
      'iframe',
      'https://port.example/',
      ['https://port.example:443'],
      false,
    ],
    ['where none is listed', 'iframe', 'https://app.example.com/', [], true],
    ['where none is listed and the page is not told', 'embed', undefined, [], true],
    ['whose page is not told', 'iframe', undefined, LISTED, false],
    ['whose page is no URL', 'iframe', 'nonsense', LISTED, false],
  ])('%s: %s from %s with %j is refused: %s', (_what, destination, referrer, origins, refused) => {
    expect(isRefusedFrame({ destination, referrer }, origins)).toBe(refused);
  });

  test.each(['document', 'empty', undefined])('is not what %s asks for', (destination) => {
    const referrer = 'https://evil.example/';
    expect(isRefusedFrame({ destination, referrer }, [])).toBe(false);
  });

  test('that is refused is told of its origin alone, and never of what the referrer says besides', () => {
    const page = refusedFrame('https://evil.example/<script>alert(1)</script>?a="b"');
    expect(page).toContain('<strong>https://evil.example</strong>');
    expect(page).not.toContain('<script>');
    // A host may have these characters.
    expect(refusedFrame(`http://a&lt;b"'.example/`)).toContain(
      'http://a&amp;lt;b&quot;&#39;.example',
    );
    expect(refusedFrame('"><script>')).toContain('The page around this frame');
  });
});
