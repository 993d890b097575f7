import { parseConfig } from '@posthorn/platform/service/config.ts';
import type { Command } from 'commander';
import { print, type Output } from '../output.ts';
import { matches, parseFilter, parseLimit, parsePlace } from './letter-filter.ts';
import { createNewest } from './newest-letters.ts';
import { findLetter, lettersConfig, openLetters } from './open-letters.ts';
import { replay } from './replay-command.ts';
import {
  describeLetter,
  describeLine,
  lineOf,
  textOfLine,
  type LetterLine,
} from './show-letter.ts';

interface ListOptions extends Output {
  limit: string;
}

/** Adds `dead-letters list|show|replay` (docs/dead-letters.md). */
export function addDeadLetterCommands(program: Command): void {
  const group = program
    .command('dead-letters')
    .description('What could not go on (docs/dead-letters.md)');
  withFilters(group.command('list'))
    .description('list dead letters, the newest first')
    .option('--limit <count>', 'how many at most, 1 to 10000', '100')
    .action(list);
  group
    .command('show <id>')
    .description('show one dead letter and the record in it')
    .option('--json', 'print JSON')
    .action(show);
  withFilters(group.command('replay [id]'))
    .description('publish unreadable records again, resend failed deliveries')
    .option('--all', 'every dead letter; needed where neither id nor filter is given')
    .option('--dry-run', 'only tell what would be done')
    .action(replay);
}

function withFilters(command: Command): Command {
  return command
    .option('--reason <reason>', 'unreadable_record, schedule_exhausted or message_missing')
    .option('--source-topic <topic>', 'where the record was, with or without TOPIC_PREFIX')
    .option('--webhook <id>', 'of this webhook')
    .option('--message <id>', 'of this message')
    .option('--since <time>', 'put there at or after it: ISO time with zone')
    .option('--until <time>', 'put there at or before it: ISO time with zone')
    .option('--json', 'print JSON');
}

async function list(options: ListOptions): Promise<void> {
  const filter = parseFilter(options);
  const newest = createNewest<LetterLine>(parseLimit(options.limit));
  const letters = await openLetters(parseConfig('admin', lettersConfig, process.env));
  await letters.read({ sinceMs: filter.since }, (letter) => {
    if (matches(letter, filter, letters.prefix)) newest.add(lineOf(letter));
    return Promise.resolve();
  });
  const shown = newest.entries();
  if (options.json) {
    print(options, { matched: newest.seen(), letters: shown.map(describeLine) });
    return;
  }
  for (const line of shown) process.stdout.write(`${textOfLine(line)}\n`);
  process.stdout.write(`${shown.length} of ${newest.seen()} dead letters\n`);
}

async function show(id: string, output: Output): Promise<void> {
  const place = parsePlace(id);
  const letters = await openLetters(parseConfig('admin', lettersConfig, process.env));
  print(output, describeLetter(await findLetter(letters, place)));
}
