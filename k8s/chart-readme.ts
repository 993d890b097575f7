import { isMap, isScalar, parseDocument, type Node, type Pair, type YAMLMap } from 'yaml';

interface Row {
  key: string;
  value: string;
  text: string;
}

/** Returns the README of the chart with the table of these values in place of the one between its two marks. */
export function chartReadme(readme: string, values: string): string {
  const [before = '', rest = ''] = readme.split('<!-- values -->');
  const [, after = ''] = rest.split('<!-- end of values -->');
  return `${before}<!-- values -->\n\n${table(values)}\n<!-- end of values -->${after}`;
}

function table(values: string): string {
  const { contents } = parseDocument(values);
  const rows = isMap(contents) ? rowsOf(contents as YAMLMap<Node, Node>, '') : [];
  const lines = rows.map(({ key, value, text }) => `| \`${key}\` | ${value} | ${text} |`);
  return ['| Value | Default | Meaning |', '| --- | --- | --- |', ...lines, ''].join('\n');
}

/** A row for each value, and one for each map with a comment. A map on one line is a value. */
function rowsOf(map: YAMLMap<Node, Node>, prefix: string): Row[] {
  return map.items.flatMap((pair, index) => {
    const key = `${prefix}${String(isScalar(pair.key) ? pair.key.value : pair.key)}`;
    const text = commentOf(pair, index === 0 ? map : undefined);
    const { value } = pair;
    if (!isMap(value) || value.flow === true || value.items.length === 0) {
      return [{ key, value: `\`${JSON.stringify(value?.toJSON() ?? null)}\``, text }];
    }
    const rows = rowsOf(value as YAMLMap<Node, Node>, `${key}.`);
    return text === '' ? rows : [{ key, value: '', text }, ...rows];
  });
}

/** The last paragraph of the comment above a value. YAML gives the one above the first value to the map. */
function commentOf({ key }: Pair<Node, Node>, map: YAMLMap<Node, Node> | undefined): string {
  const comment = key.commentBefore ?? map?.commentBefore ?? '';
  const paragraph = comment.split(/\n\s*\n/).at(-1) ?? '';
  return paragraph
    .replaceAll(/\s*\n\s*/g, ' ')
    .replaceAll('|', '\\|')
    .trim();
}
