import { describe, expect, test } from '@jest/globals';
import { Command } from 'commander';
import { formatCsv, formatResult, formatTable, listCommands } from './output.ts';

describe('a printed result', () => {
  test('has a line for each field, with times in ISO 8601', () => {
    const result = { companyId: 'comp_1', createdAt: new Date(0), keys: 2, note: null };
    expect(formatResult(result)).toBe(
      'companyId: comp_1\ncreatedAt: 1970-01-01T00:00:00.000Z\nkeys: 2\nnote: null',
    );
  });

  test('indents nested fields', () => {
    expect(formatResult({ skipped: { cut: 1, source: { topic: 't' } } })).toBe(
      'skipped:\n  cut: 1\n  source:\n    topic: t',
    );
  });

  test('separates the entries of a list by an empty line', () => {
    expect(formatResult([{ a: 1 }, { a: 2 }])).toBe('a: 1\n\na: 2');
  });

  test('contains no control characters of names and values', () => {
    expect(formatResult({ name: 'red \u001b[31m\nmore' })).toBe('name: red \\u001b[31m\\u000amore');
  });
});

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

describe('a CSV file', () => {
  test('has a header and lines with CRLF, and quotes what has a comma, a quote or a line break', () => {
    const rows = [
      { companyId: 'comp_1', attempts: 5, note: 'plain' },
      { companyId: 'a,b', attempts: -12, note: 'she said "no"\nand left' },
    ];
    expect(formatCsv(['companyId', 'attempts', 'note'], rows)).toBe(
      'companyId,attempts,note\r\ncomp_1,5,plain\r\n"a,b",-12,"she said ""no""\nand left"\r\n',
    );
  });

  test.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1'])('disarms the text %j', (text) => {
    expect(formatCsv(['name'], [{ name: text }])).toBe(`name\r\n'${text}\r\n`);
  });

  test('disarms a text before it is quoted', () => {
    expect(formatCsv(['name'], [{ name: '=A1,"x"' }])).toBe('name\r\n"\'=A1,""x"""\r\n');
  });

  test('without rows is its header', () => {
    expect(formatCsv(['companyId', 'messages'], [])).toBe('companyId,messages\r\n');
  });
});

test('every command has a line with its group if it has one, its arguments and its description', () => {
  const program = new Command('admin');
  const group = program.command('key');
  group.command('list <companyId>').description('list the keys');
  group.command('replay [id]').description('publish again');
  program.command('usage').description('print what companies used');
  expect(listCommands(program).split('\n')).toEqual([
    '  key list <companyId>           list the keys',
    '  key replay [id]                publish again',
    '  usage                          print what companies used',
  ]);
});
