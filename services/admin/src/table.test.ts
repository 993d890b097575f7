import { expect, test } from '@jest/globals';
import { formatTable } from './table.ts';

test('rows are columns under their names, numbers aligned right', () => {
  const rows = [
    { webhookId: 'wh_1', failed: 5, failures: 'timeout 5' },
    { webhookId: 'wh_10', failed: 12_345, failures: 'x\n' },
  ];
  expect(formatTable(rows)).toBe(
    [
      'webhookId  failed  failures',
      'wh_1            5  timeout 5',
      'wh_10       12345  x\\u000a',
    ].join('\n'),
  );
});

test('no row is said to be none', () => {
  expect(formatTable([])).toBe('none');
});
