import { expect, it } from '@jest/globals';
import { valuesIn } from './read-metric.ts';

it('reads the values of one metric, and of no other whose name begins alike', () => {
  const text = [
    '# HELP posthorn_lag Records.',
    '# TYPE posthorn_lag gauge',
    'posthorn_lag{topic="a b"} 3',
    'posthorn_lag{topic="c"} 1.5e3',
    'posthorn_lag_seconds 7',
    '',
  ].join('\n');
  expect(valuesIn(text, 'posthorn_lag')).toEqual([3, 1_500]);
  expect(valuesIn(text, 'posthorn_lag_seconds')).toEqual([7]);
  expect(valuesIn(text, 'posthorn')).toEqual([]);
});
