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

  /** Prints one result: for people a table of the fields that `show` returns, and of each list. */
  value<T extends object>(value: T, show: (value: T) => object = (all) => all): void {
    if (this.isJson) this.#printJson(value);
    else this.#stdout.write(`${formatTables(show(value), this.#width).join('\n')}\n`);
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
    const head = this.isJson ? jsonOf({ method, url }) : `method: ${method}\nurl: ${url}`;
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
    const lines = formatTable(items, columns);
    const [head = '', ...rows] = lines.map((line) => line.slice(0, this.#width));
    this.#stdout.write(`${[this.colours.bold(head), ...rows].join('\n')}\n`);
  }

  /**
   * Prints one event of a stream: as JSON in one line, which has its type and its data for every command, or the line for
   * people, who get none for null.
   */
  event(type: string, data: object, line: string | null): void {
    if (this.isJson) this.#stdout.write(`${jsonOf({ type, data })}\n`);
    else if (line !== null) this.#stdout.write(`${line}\n`);
  }

  /** Prints an answer of the API as it is, and JSON in lines for people on a terminal. */
  answer(text: string): void {
    try {
      this.#printJson(JSON.parse(text));
    } catch {
      this.#stdout.write(`${escapeControls(text)}\n`);
    }
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

  /** Tables are cut there. */
  get #width(): number {
    return this.#stdout.isTTY ? (this.#stdout.columns ?? Infinity) : Infinity;
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

/** Returns the lines of a table of all fields, and below it of one for each list of objects, which `width` cuts. */
export function formatTables(value: object, width = Infinity): string[] {
  const fields = flatten(value);
  const lists = fields.flatMap(([name, field]) => (isTable(field) ? [[name, field] as const] : []));
  const single = fields.filter(([, field]) => !isTable(field));
  const nameWidth = Math.max(0, ...single.map(([name]) => name.length));
  const lines = single.map(([name, field]) => {
    return `${name.padEnd(nameWidth)}  ${textOf(field)}`.trimEnd();
  });
  const tables = lists.flatMap(([name, items]) => [
    ...(lines.length > 0 ? [''] : []),
    name,
    ...tableOf(items).map((line) => `  ${line}`.slice(0, width)),
  ]);
  return [...lines, ...tables];
}

function tableOf(items: readonly object[]): string[] {
  const rows = items.map((item) => new Map(flatten(item)));
  const names = [...new Set(rows.flatMap((row) => [...row.keys()]))];
  const columns = names.map((name) => {
    const cellOf = (row: ReadonlyMap<string, unknown>): Cell => {
      const field = row.get(name);
      return typeof field === 'number' ? field : textOf(field);
    };
    return [name, cellOf] as const;
  });
  return formatTable(rows, Object.fromEntries(columns));
}

type FieldEntry = [name: string, field: unknown];

/** Names the fields of objects with a dot, such as `latencyMs.p50`. */
function flatten(value: object): FieldEntry[] {
  return Object.entries(value).flatMap(([key, field]: FieldEntry): FieldEntry[] => {
    if (field === undefined) return [];
    const name = escapeControls(key);
    if (!isObject(field) || Object.keys(field).length === 0) return [[name, field]];
    return flatten(field).map(([inner, each]) => [`${name}.${inner}`, each]);
  });
}

const isObject = (field: unknown): field is object =>
  typeof field === 'object' && field !== null && !Array.isArray(field);

const isTable = (field: unknown): field is readonly object[] =>
  Array.isArray(field) && field.length > 0 && field.every(isObject);

/** Lists within the rows of a table are JSON. */
function textOf(field: unknown): string {
  if (Array.isArray(field)) {
    const isPlain = field.every((each) => typeof each !== 'object');
    return isPlain ? escapeControls(field.join(', ')) : jsonOf(field);
  }
  return isObject(field) ? '' : formatCell(field as Cell);
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
