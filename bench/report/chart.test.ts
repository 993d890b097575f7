import { describe, expect, test } from '@jest/globals';
import { drawChart } from './chart.ts';

const PANEL = {
  title: 'latency <ms>',
  lines: [
    {
      name: 'p99 & p50',
      points: [
        [0, 5],
        [1, null],
        [2, 10],
      ] as const,
    },
  ],
};

/** Checks tags as an XML parser would: each one closed, in order, and no bare "<" or "&" between them. */
function expectWellFormed(svg: string): void {
  const open: string[] = [];
  const rest = svg.replace(/<(\/?)([a-z]+)((?: +[a-zA-Z-]+="[^"<&]*")*) *(\/?)>/g, (...parts) => {
    const [, closing, name, , selfClosing] = parts as string[];
    if (closing) expect(open.pop()).toBe(name);
    else if (!selfClosing) open.push(name ?? '');
    return '';
  });
  expect(open).toEqual([]);
  expect(rest).not.toMatch(/[<>]|&(?!amp;|lt;|gt;)/);
}

describe('the chart', () => {
  test('is well-formed, even with characters that XML reserves', () => {
    const columns = [{ title: 'a < b & c', notes: ['"quoted" > all'], panels: [PANEL, PANEL] }];
    expectWellFormed(drawChart({ title: '<script>', notes: ['&'], columns }));
  });

  test('is well-formed with nothing in it', () => {
    expectWellFormed(drawChart({ title: 'empty', notes: [], columns: [] }));
    const columns = [{ title: '', notes: [], panels: [{ title: '', lines: [] }] }];
    expectWellFormed(drawChart({ title: 'empty', notes: [], columns }));
  });

  test('refers to nothing outside itself', () => {
    const svg = drawChart({ title: 't', notes: [], columns: [] });
    expect(svg.match(/https?:\/\/[^"]+/g)).toEqual(['http://www.w3.org/2000/svg']);
    expect(svg).not.toMatch(/href|script|style/);
  });

  test('leaves a gap where nothing was measured', () => {
    const columns = [{ title: '', notes: [], panels: [PANEL] }];
    const svg = drawChart({ title: '', notes: [], columns });
    expect(svg).toMatch(/d="M[\d.]+ [\d.]+ M[\d.]+ [\d.]+" fill="none"/);
  });
});
