/** Indents JSON without reading its values, so that none of them changes. */
export function pretty(json: string): string {
  let depth = 0;
  return json.replaceAll(TOKENS, (token) => {
    if (token === '{' || token === '[') return token + lineAt(++depth);
    if (token === '}' || token === ']') return lineAt(--depth) + token;
    if (token === ',') return token + lineAt(depth);
    if (token === ':') return ': ';
    return /^\s/.test(token) ? '' : token;
  });
}

/** Text, brackets, separators, spaces; empty objects and lists stay together. */
const TOKENS = /"(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|[{}[\],:]|\s+/g;

function lineAt(depth: number): string {
  return `\n${'  '.repeat(depth)}`;
}
