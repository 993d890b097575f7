import { escapeControls } from './command.ts';

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
