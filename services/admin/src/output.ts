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
