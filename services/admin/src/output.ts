export interface Output {
  json?: boolean;
}

/** Prints what a command answers: one line of JSON, or lines for people. */
export function print({ json }: Output, result: object): void {
  process.stdout.write(`${json ? JSON.stringify(result) : inLines(result)}\n`);
}

function inLines(result: object): string {
  if (Array.isArray(result)) return result.map((each: object) => inLines(each)).join('\n\n');
  return Object.entries(result)
    .map(([name, value]: [string, unknown]) =>
      value instanceof Object && !(value instanceof Date)
        ? `${name}:\n${inLines(value).replace(/^(?=.)/gm, '  ')}`
        : `${printable(name)}: ${value instanceof Date ? value.toISOString() : printable(String(value))}`,
    )
    .join('\n');
}

/** Control characters of a foreign record or a name must not reach a terminal. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}
