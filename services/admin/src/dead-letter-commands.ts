import { DEAD_LETTER_REASONS } from '@posthorn/platform/records/dead-letters.ts';
import { parseConfig } from '@posthorn/platform/service/config.ts';
import type { Command } from 'commander';
import { isUtf8 } from 'node:buffer';
import { escapeControls, type OutputOptions, printResult } from './output.ts';
import {
  findLetter,
  isoTime,
  type Letter,
  lettersConfig,
  matchesFilter,
  openLetters,
  parseFilter,
  parseLimit,
  parsePlace,
  webhookIdOf,
} from './letters.ts';
import { replayDeadLetters } from './replay.ts';

/** Adds `dead-letters list|show|replay` (docs/dead-letters.md). */
export function addDeadLetterCommands(program: Command): void {
  const group = program
    .command('dead-letters')
    .description(
      'Records that could not be processed, and exhausted deliveries (docs/dead-letters.md)',
    );
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

interface ListOptions extends OutputOptions {
  limit: string;
}

/** Prints the newest dead letters that match, and how many match in all. */
async function listDeadLetters(options: ListOptions): Promise<void> {
  const filter = parseFilter(options);
  const newest = createNewest<LetterSummary>(parseLimit(options.limit));
  const letters = await openLetters(parseConfig('admin', lettersConfig, process.env));
  await letters.read(filter, (letter) => {
    if (matchesFilter(letter, filter, letters.prefix)) newest.add(summarize(letter));
    return Promise.resolve();
  });
  const shown = newest.entries();
  if (options.json) {
    printResult(options, { matched: newest.added(), letters: shown.map(summaryToJson) });
    return;
  }
  for (const summary of shown) process.stdout.write(`${summaryToText(summary)}\n`);
  process.stdout.write(`${shown.length} of ${newest.added()} dead letters\n`);
}

/** Prints one dead letter. */
async function showDeadLetter(id: string, output: OutputOptions): Promise<void> {
  const place = parsePlace(id);
  const letters = await openLetters(parseConfig('admin', lettersConfig, process.env));
  printResult(output, describeLetter(await findLetter(letters, place)));
}

/** A letter as the list shows it: its place, its reason and its ids, never a payload. */
interface LetterSummary {
  id: string;
  atMs: number;
  reason: string;
  detail: string;
  sourceTopic: string;
  sourcePlace: string;
  messageId: string | null;
  webhookId: string | null;
  deliveryId: string | null;
}

const SHOWN_BYTES = 512;

export function summarize(letter: Letter): LetterSummary {
  const { id, atMs, reason, detail, source, content } = letter;
  return {
    id,
    atMs,
    reason,
    detail,
    sourceTopic: source.topic,
    sourcePlace: source.place,
    messageId: content?.messageId ?? null,
    webhookId: webhookIdOf(letter),
    deliveryId: content?.deliveryId ?? null,
  };
}

/** Returns the entry of the list in JSON output. */
export function summaryToJson({ atMs, ...summary }: LetterSummary): object {
  const { id, ...rest } = summary;
  return { id, at: isoTime(atMs), ...rest };
}

/** Returns one line of text, with the control characters of foreign records escaped. */
export function summaryToText(summary: LetterSummary): string {
  const { id, atMs, reason, detail, sourceTopic, sourcePlace, messageId, webhookId } = summary;
  const ids = [messageId, webhookId].filter((each) => each !== null);
  const parts = [id, isoTime(atMs), reason, `${sourceTopic} ${sourcePlace}`, ...ids, detail];
  return escapeControls(parts.join('  '));
}

/** Describes a letter with its record: by its fields if this version can read them, else by its first bytes. */
export function describeLetter(letter: Letter): object {
  const { id, atMs, reason, detail, source, record, content, cutFromBytes } = letter;
  return {
    id,
    at: isoTime(atMs),
    reason,
    detail,
    source: { topic: source.topic, place: source.place },
    ...(cutFromBytes !== null && { cutFromBytes }),
    key: record.key,
    headers: record.headers,
    bytes: record.value.length,
    ...(content ? { record: describeContent(content) } : { begins: beginningOf(record.value) }),
  };
}

function describeContent(content: NonNullable<Letter['content']>): object {
  const { deliveryId, messageId, webhookId, companyId, appId, createdAtMs, details } = content;
  return {
    deliveryId,
    messageId,
    webhookId,
    companyId,
    appId,
    createdAt: isoTime(createdAtMs),
    ...details,
  };
}

/** Returns the first bytes as text if they are text, else in hexadecimal digits. */
export function beginningOf(value: Buffer, shownBytes = SHOWN_BYTES): object {
  const start = value.subarray(0, shownBytes);
  // The cut may split the last character, of up to 4 bytes.
  const cuts = start.length < value.length ? [0, 1, 2, 3] : [0];
  const whole = cuts.map((cut) => start.subarray(0, start.length - cut)).find(isUtf8);
  const text = whole?.toString();
  return text !== undefined && !CONTROLS.test(text) ? { text } : { hex: start.toString('hex') };
}

/** Control characters except tabs and line ends. */
const CONTROLS = /[^\P{Cc}\t\n\r]/u;

/** Keeps the newest of the entries that it is given, which may come in any order. */
interface Newest<T> {
  add: (entry: T) => void;
  /** How many entries were added, those included that are no longer kept. */
  added: () => number;
  /** Newest first. */
  entries: () => T[];
}

/** Keeps `limit` entries, and at most twice as many in memory. */
export function createNewest<T extends { atMs: number }>(limit: number): Newest<T> {
  let kept: T[] = [];
  let added = 0;
  const cut = (): void => {
    kept = kept.sort((a, b) => b.atMs - a.atMs).slice(0, limit);
  };
  return {
    add(entry) {
      added += 1;
      kept.push(entry);
      if (kept.length >= 2 * limit) cut();
    },
    added: () => added,
    entries() {
      cut();
      return [...kept];
    },
  };
}
