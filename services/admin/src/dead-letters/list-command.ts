import { parseConfig } from '@posthorn/platform/service/settings/config.ts';
import { printResult, type OutputOptions } from '../output.ts';
import { summarize, summaryToJson, summaryToText, type LetterSummary } from './describe-letter.ts';
import { matchesFilter, parseFilter, parseLimit } from './letter-filter.ts';
import { createNewest } from './newest-letters.ts';
import { lettersConfig, openLetters } from './open-letters.ts';

export interface ListOptions extends OutputOptions {
  limit: string;
}

/** Prints the newest dead letters that match, and how many match in all. */
export async function listDeadLetters(options: ListOptions): Promise<void> {
  const filter = parseFilter(options);
  const newest = createNewest<LetterSummary>(parseLimit(options.limit));
  const letters = await openLetters(parseConfig('admin', lettersConfig, process.env));
  await letters.read({ sinceMs: filter.since }, (letter) => {
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
