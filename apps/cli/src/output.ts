import type { List } from '@posthorn/client';
import pc from 'picocolors';

/** A stream of the process, or that of a test. */
export interface OutputStream {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

export interface OutputOptions {
  json?: boolean | undefined;
  quiet?: boolean | undefined;
}

/** The columns of a table by their heads. A cell is empty for null and undefined. */
export type Columns<T> = Readonly<Record<string, (item: T) => Cell>>;
export type Cell = string | number | boolean | null | undefined;

type Colours = ReturnType<typeof pc.createColors>;

/**
 * Everything that a command prints. Results go to standard output: for people as lines and tables, with `--json` as the
 * `data` of the API. Notes, questions, progress and errors go to standard error.
 */
export class Output {
  readonly isJson: boolean;
  /** Of standard error. */
  readonly isInteractive: boolean;
  readonly colours: Colours;
  readonly #isQuiet: boolean;
  readonly #stdout: OutputStream;
  readonly #stderr: OutputStream;

  constructor(
    streams: { stdout: OutputStream; stderr: OutputStream },
    env: Readonly<Record<string, string | undefined>>,
    { json = false, quiet = false }: OutputOptions,
  ) {
    this.#stdout = streams.stdout;
    this.#stderr = streams.stderr;
    this.isJson = json;
    this.#isQuiet = quiet;
    this.isInteractive = this.#stderr.isTTY === true;
    this.colours = pc.createColors(!env.NO_COLOR && this.#stdout.isTTY === true && !json);
  }

  /** Prints one result: its fields, one in each line. */
  value(value: object): void {
    if (this.isJson) this.#printJson(value);
    else this.#stdout.write(`${formatFields(value)}\n`);
  }

  /** Prints that something was done, for people; with `--json`, the value. */
  done(text: string, value: object = {}): void {
    if (this.isJson) this.#printJson(value);
    else this.#stdout.write(`${escapeControls(text)}\n`);
  }

  /** Prints a request that is not made, with the text of its body. */
  request({ method, url, body }: { method: string; url: string; body?: string }): void {
    // In JSON, these are between values only.
    const shown = body?.replace(/[^\t\n\r]+/g, escapeControls);
    const head = this.isJson ? jsonOf({ method, url }) : formatFields({ method, url });
    if (shown === undefined) this.#stdout.write(`${head}\n`);
    else if (this.isJson) this.#stdout.write(`${head.slice(0, -1)},"body":${shown}}\n`);
    else this.#stdout.write(`${head}\nbody: ${shown}\n`);
  }

  /** Prints at most `limit` items of a list; a note says when there are more. */
  async list<T>(list: List<T>, columns: Columns<T>, limit: number): Promise<void> {
    const items: T[] = [];
    let isMore = false;
    for await (const item of list) {
      isMore = items.length === limit;
      if (isMore) break;
      items.push(item);
    }
    this.table(items, columns);
    if (isMore) this.note(`There are more than ${limit}: see --limit.`);
  }

  table<T>(items: readonly T[], columns: Columns<T>): void {
    if (this.isJson) {
      this.#printJson(items);
      return;
    }
    if (items.length === 0) {
      this.note('none');
      return;
    }
    const width = this.#stdout.isTTY ? (this.#stdout.columns ?? Infinity) : Infinity;
    const [head = '', ...rows] = formatTable(items, columns).map((line) => line.slice(0, width));
    this.#stdout.write(`${[this.colours.bold(head), ...rows].join('\n')}\n`);
  }

  /** Prints one event of a stream: a line for people, else JSON in one line. */
  event(event: object, line: string): void {
    this.#stdout.write(`${this.isJson ? jsonOf(event) : line}\n`);
  }

  /** Prints text as it is, such as a script. */
  raw(text: string): void {
    this.#stdout.write(text);
  }

  /** Prints a line for people to standard error, unless `--quiet`. */
  note(text: string): void {
    if (!this.#isQuiet) this.#stderr.write(`${escapeControls(text)}\n`);
  }

  error(lines: readonly string[]): void {
    this.#stderr.write(lines.map((line) => `${escapeControls(line)}\n`).join(''));
  }

  /** Shows a line that the next one replaces, on a terminal. An empty one clears it. */
  progress(text: string): void {
    if (!this.isInteractive || this.#isQuiet) return;
    this.#stderr.write(`\r${escapeControls(text)}\u001b[K`);
  }

  #printJson(value: unknown): void {
    this.#stdout.write(`${jsonOf(value, this.#stdout.isTTY ? 2 : 0)}\n`);
  }
}

/**
 * Returns JSON without characters that control a terminal. `JSON.stringify` escapes those below the space only; the others
 * occur in texts alone, where an escape means the same character.
 */
export function jsonOf(value: unknown, indent = 0): string {
  return JSON.stringify(value, null, indent).split('\n').map(escapeControls).join('\n');
}

/**
 * Escapes control characters and those that change the direction of text: what a name, a payload or an answer of an
 * endpoint has must not control a terminal.
 */
export function escapeControls(text: string): string {
  return text.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** The time of day on this machine. */
export function clockOf(ms: number): string {
  const date = new Date(ms);
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}

/** Returns one line for each field, nested fields indented. */
export function formatFields(value: object): string {
  return Object.entries(value)
    .map(([name, field]: [string, unknown]) => formatField(escapeControls(name), field))
    .join('\n');
}

function formatField(name: string, field: unknown): string {
  if (typeof field !== 'object' || field === null) return `${name}: ${formatCell(field as Cell)}`;
  if (Array.isArray(field) && field.every((each) => typeof each !== 'object')) {
    return `${name}: ${escapeControls(field.join(', '))}`;
  }
  const inner = formatFields(field);
  return inner === '' ? `${name}:` : `${name}:\n${inner.replace(/^/gm, '  ')}`;
}

function formatCell(cell: Cell): string {
  return cell === null || cell === undefined ? '' : escapeControls(String(cell));
}

/** Returns the head and a line for each item; numbers are aligned right. */
export function formatTable<T>(items: readonly T[], columns: Columns<T>): string[] {
  const cells = Object.entries(columns).map(([head, cellOf]) => {
    const values = items.map((item) => cellOf(item));
    const texts = [head, ...values.map(formatCell)];
    const width = Math.max(...texts.map(({ length }) => length));
    const isNumber = values.some((value) => typeof value === 'number');
    return texts.map((text) => (isNumber ? text.padStart(width) : text.padEnd(width)));
  });
  return Array.from({ length: items.length + 1 }, (_, row) =>
    cells
      .map((column) => column[row] ?? '')
      .join('  ')
      .trimEnd(),
  );
}
