import type { Command } from 'commander';

export interface OutputOptions {
  /** Prints JSON instead of lines for people. */
  json?: boolean;
}

export function printResult({ json }: OutputOptions, result: object): void {
  process.stdout.write(`${json ? JSON.stringify(result) : formatResult(result)}\n`);
}

/** Returns one line for each field, nested fields indented, and an empty line between list entries. */
export function formatResult(result: object): string {
  if (Array.isArray(result)) return result.map((each: object) => formatResult(each)).join('\n\n');
  return Object.entries(result)
    .map(([name, value]: [string, unknown]) => formatField(name, value))
    .join('\n');
}

function formatField(name: string, value: unknown): string {
  if (value instanceof Date) return `${escapeControls(name)}: ${value.toISOString()}`;
  if (value instanceof Object) return `${name}:\n${indent(formatResult(value))}`;
  return `${escapeControls(name)}: ${escapeControls(String(value))}`;
}

function indent(text: string): string {
  return text.replace(/^(?=.)/gm, '  ');
}

/** Escapes control characters: those in a name or in a foreign record must not reach a terminal. */
export function escapeControls(text: string): string {
  return text.replace(/\p{Cc}/gu, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

type Cell = string | number;

/** Returns rows of equal fields as columns under their names; numbers are aligned right. */
export function formatTable(rows: readonly Readonly<Record<string, Cell>>[]): string {
  const [first] = rows;
  if (!first) return 'none';
  const columns = Object.keys(first).map((name) => {
    const cells = [name, ...rows.map((row) => escapeControls(String(row[name])))];
    const width = Math.max(...cells.map(({ length }) => length));
    const pad = (cell: string): string =>
      typeof first[name] === 'number' ? cell.padStart(width) : cell.padEnd(width);
    return cells.map(pad);
  });
  const lines = [first, ...rows].map((_, line) => columns.map((cells) => cells[line]).join('  '));
  return lines.map((line) => line.trimEnd()).join('\n');
}

/**
 * Returns rows of equal fields as CSV (RFC 4180) under a row with the names, lines with CRLF. A text that spreadsheets
 * would read as a formula gets a `'` in front: its sender is a customer, and its reader opens the file. `names` are the
 * fields in their order, so that a file without rows has its header too.
 */
export function formatCsv<Name extends string>(
  names: readonly Name[],
  rows: readonly Readonly<Record<Name, Cell>>[],
): string {
  const lines = [names, ...rows.map((row) => names.map((name) => row[name]))];
  return lines.map((cells) => `${cells.map(csvCell).join(',')}\r\n`).join('');
}

/** OWASP names a tab and a carriage return beside the four signs. */
const FORMULA = /^[=+\-@\t\r]/;

function csvCell(cell: Cell): string {
  const text = String(cell);
  const safe = typeof cell === 'string' && FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Column where the descriptions start. */
const DESCRIPTION_COLUMN = 33;

/** Returns one line for each command, after the name of its group if it has one, with its arguments and its description. */
export function listCommands(program: Command): string {
  return linesOf('', program).join('\n');
}

function linesOf(group: string, { commands }: Command): string[] {
  return commands.flatMap((each) =>
    each.commands.length === 0 ? [lineOf(group, each)] : linesOf(`${group}${each.name()} `, each),
  );
}

function lineOf(group: string, command: Command): string {
  const usage = ['  ', group, command.name(), ' ', ...argumentsOf(command)].join('');
  return `${usage.padEnd(DESCRIPTION_COLUMN - 1)} ${command.description()}`;
}

function argumentsOf(command: Command): string[] {
  return command.registeredArguments.map((argument) =>
    argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
  );
}
