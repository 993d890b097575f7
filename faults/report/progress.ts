import type { Book } from '../load/book.ts';

export interface Progress {
  /** Shown until something else is said. */
  say: (what: string) => void;
  stop: () => void;
}

interface ProgressOptions {
  name: string;
  book: Book;
  answers: () => Readonly<Record<string, number>>;
}

/** A terminal overwrites the line; in a file each line stays, so fewer are written. */
const EVERY_MS = process.stdout.isTTY ? 500 : 5_000;

/** Prints a line about the running round, at a fixed interval. */
export function startProgress(options: ProgressOptions): Progress {
  const startedMs = performance.now();
  let said = 'load before the fault';
  const print = (): void => {
    const line = progressLine(options, (performance.now() - startedMs) / 1_000, said);
    process.stdout.write(process.stdout.isTTY ? `\r\x1b[2K${line}` : `${line}\n`);
  };
  const timer = setInterval(print, EVERY_MS).unref();
  return {
    say: (what) => {
      said = what;
      print();
    },
    stop: () => {
      clearInterval(timer);
      if (process.stdout.isTTY) process.stdout.write('\r\x1b[2K');
    },
  };
}

export function progressLine(
  { name, book, answers }: ProgressOptions,
  seconds: number,
  said: string,
): string {
  const { accepted, delivered, waiting } = book.counts();
  const others = Object.entries(answers())
    .filter(([answer]) => answer !== '202')
    .map(([answer, count]) => `, ${count} × ${answer}`);
  const clock = `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;
  return `${name}  ${clock}  accepted ${accepted}, delivered ${delivered}, waiting ${waiting}${others.join('')}  ${said}`;
}
