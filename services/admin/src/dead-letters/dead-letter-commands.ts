import { DEAD_LETTER_REASONS } from '@posthorn/platform/dead-letters/dead-letter-record.ts';
import type { Command } from 'commander';
import { listDeadLetters } from './list-command.ts';
import { replayDeadLetters } from './replay-command.ts';
import { showDeadLetter } from './show-command.ts';

/** Adds `dead-letters list|show|replay` (docs/dead-letters.md). */
export function addDeadLetterCommands(program: Command): void {
  const group = program
    .command('dead-letters')
    .description('Records that could not be processed (docs/dead-letters.md)');
  withFilters(group.command('list'))
    .description('list dead letters, newest first')
    .option('--limit <count>', 'most entries to show, 1 to 10000', '100')
    .action(listDeadLetters);
  group
    .command('show <id>')
    .description('show one dead letter and its record')
    .option('--json', 'print JSON')
    .action(showDeadLetter);
  withFilters(group.command('replay [id]'))
    .description('publish unreadable records again, and resend failed deliveries')
    .option('--all', 'every dead letter; required without an id and filters')
    .option('--dry-run', 'only show what would be done')
    .action(replayDeadLetters);
}

function withFilters(command: Command): Command {
  return command
    .option('--reason <reason>', `one of ${DEAD_LETTER_REASONS.join(', ')}`)
    .option('--source-topic <topic>', 'topic of the record, with or without TOPIC_PREFIX')
    .option('--webhook <id>', 'only of this webhook')
    .option('--message <id>', 'only of this message')
    .option('--since <time>', 'written at this time or later: ISO time with a zone')
    .option('--until <time>', 'written at this time or earlier: ISO time with a zone')
    .option('--json', 'print JSON');
}
