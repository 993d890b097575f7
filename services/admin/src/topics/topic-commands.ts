import type { Command } from 'commander';
import { applyTopics } from './apply-command.ts';
import { checkTopics } from './check-command.ts';

/** Adds `topics check|apply` (docs/topics.md). */
export function addTopicCommands(program: Command): void {
  const group = program.command('topics').description('Topics and their settings (docs/topics.md)');
  group
    .command('check')
    .description('show where topics differ from their contract; exit code 1 if they do')
    .option('--json', 'print JSON')
    .action(checkTopics);
  group
    .command('apply')
    .description('set the settings of topics to their contract')
    .option('--dry-run', 'only show what would be done')
    .option('--force', 'also shorten retentions, and lower min.insync.replicas')
    .option('--json', 'print JSON')
    .action(applyTopics);
}
