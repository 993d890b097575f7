import { expect, test } from '@jest/globals';
import { Command } from 'commander';
import { listCommands } from './main.ts';

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
