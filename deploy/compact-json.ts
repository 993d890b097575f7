const WIDTH = 100;

/** Returns JSON in which each list and object that fits stands on one line, as the formatter of this repository writes it. */
export function compactJson(value: unknown): string {
  return `${written(value, 0, 0)}\n`;
}

/** `before`: the characters before the value on its line; one more follows it, a comma. */
function written(value: unknown, depth: number, before: number): string {
  const line = onOneLine(value);
  if (before + line.length < WIDTH || typeof value !== 'object' || value === null) return line;
  const isList = Array.isArray(value);
  const indent = '  '.repeat(depth + 1);
  const parts = Object.entries(value).map(([key, item]) => {
    const start = isList ? indent : `${indent}${JSON.stringify(key)}: `;
    return `${start}${written(item, depth + 1, start.length)}`;
  });
  const lines = `\n${parts.join(',\n')}\n${'  '.repeat(depth)}`;
  return isList ? `[${lines}]` : `{${lines}}`;
}

function onOneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(onOneLine).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).map(
    ([key, item]) => `${JSON.stringify(key)}: ${onOneLine(item)}`,
  );
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}
