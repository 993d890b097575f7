import { describe, expect, test } from '@jest/globals';
import { importCircles } from './import-circles.ts';

const A = 'libs/a/one.ts';
const B = 'libs/b/two.ts';
const C = 'libs/c/three.ts';

describe('import circles', () => {
  test('of two folders are found', () => {
    const imports = [
      { from: A, to: B },
      { from: 'libs/b/other.ts', to: 'libs/a/other.ts' },
    ];
    expect(importCircles(imports)).toEqual([
      `libs: ${A} imports ${B}`,
      'libs: libs/b/other.ts imports libs/a/other.ts',
    ]);
  });

  test('through a third entry are found, and nothing that only leads to the circle', () => {
    const circle = [
      { from: A, to: B },
      { from: B, to: C },
      { from: C, to: A },
    ];
    const imports = [...circle, { from: 'libs/d.ts', to: A }];
    expect(importCircles(imports)).toEqual(
      circle.map(({ from, to }) => `libs: ${from} imports ${to}`),
    );
  });

  test('are not imports inside one entry, and not imports in one direction', () => {
    const inside = { from: 'libs/a/one.ts', to: 'libs/a/two.ts' };
    expect(importCircles([inside, { from: A, to: B }, { from: B, to: C }])).toEqual([]);
  });
});
