import { parseConfig } from '@posthorn/platform/service/settings/config.ts';
import { printResult, type OutputOptions } from '../output.ts';
import { describeLetter } from './describe-letter.ts';
import { parsePlace } from './letter-filter.ts';
import { findLetter, lettersConfig, openLetters } from './open-letters.ts';

/** Prints one dead letter. */
export async function showDeadLetter(id: string, output: OutputOptions): Promise<void> {
  const place = parsePlace(id);
  const letters = await openLetters(parseConfig('admin', lettersConfig, process.env));
  printResult(output, describeLetter(await findLetter(letters, place)));
}
