import { isMap, isScalar, parseDocument, type Node, type Pair, type YAMLMap } from 'yaml';

interface Row {
  keys: readonly string[];
  values: readonly string[];
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
  const code = (texts: readonly string[]): string => texts.map((each) => `\`${each}\``).join(', ');
  const lines = rows
    .filter(({ text }) => text !== '')
    .map(({ keys, values, text }) => `| ${code(keys)} | ${code(values)} | ${text} |`);
  return ['| Value | Default | Meaning |', '| --- | --- | --- |', ...lines, ''].join('\n');
}

/** A row for each value. A map on one line is a value. */
function rowsOf(map: YAMLMap<Node, Node>, prefix: string): Row[] {
  const rows = map.items.flatMap((pair, index) => {
    const key = `${prefix}${String(isScalar(pair.key) ? pair.key.value : pair.key)}`;
    const text = commentOf(pair, index === 0 ? map : undefined);
    const { value } = pair;
    if (!isMap(value) || value.flow === true || value.items.length === 0) {
      return [{ keys: [key], values: [JSON.stringify(value?.toJSON() ?? null)], text }];
    }
    return underHeading(key, text, rowsOf(value as YAMLMap<Node, Node>, `${key}.`));
  });
  return rows.reduce<Row[]>(joined, []);
}

/** The comment of a map is that of its first values without one; else it has a row of its own. */
function underHeading(key: string, text: string, [first, ...others]: Row[]): Row[] {
  if (text === '' || first === undefined) return first === undefined ? [] : [first, ...others];
  if (first.text === '') return [{ ...first, text }, ...others];
  return [{ keys: [key], values: [], text }, first, ...others];
}

/** Adds values without a comment to the row before, when that is of the same map and has none either. */
function joined(rows: Row[], row: Row): Row[] {
  const before = rows.at(-1);
  const isOfSameMap = mapOf(before) === mapOf(row);
  if (before?.text !== '' || row.text !== '' || !isOfSameMap) return [...rows, row];
  const both = { keys: [...before.keys, ...row.keys], values: [...before.values, ...row.values] };
  return [...rows.slice(0, -1), { ...both, text: '' }];
}

const mapOf = (row: Row | undefined): string | undefined =>
  row?.keys[0]?.split('.').slice(0, -1).join('.');

/** The last paragraph of the comment above a value. YAML gives the one above the first value to the map. */
function commentOf({ key }: Pair<Node, Node>, map: YAMLMap<Node, Node> | undefined): string {
  const comment = key.commentBefore ?? map?.commentBefore ?? '';
  const paragraph = comment.split(/\n\s*\n/).at(-1) ?? '';
  return paragraph
    .replaceAll(/\s*\n\s*/g, ' ')
    .replaceAll('|', '\\|')
    .trim();
}
