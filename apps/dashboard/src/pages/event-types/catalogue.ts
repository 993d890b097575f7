/* How event types are grouped, found and selected. */

interface Named {
  name: string;
  group: string | null;
  description: string;
}

/** Where a name may be cut for a wildcard (docs/contract.md C6.11). */
const ENDS = /[.:/]/g;

/** An event type without a group is listed with those whose names begin alike. */
export function groupOf({ name, group }: Pick<Named, 'name' | 'group'>): string {
  return group ?? name.split(/[.:/]/)[0] ?? name;
}

export interface TypeGroup<Type> {
  name: string;
  types: Type[];
}

/** Returns the groups by name; the types in them keep their order. */
export function grouped<Type extends Pick<Named, 'name' | 'group'>>(
  types: readonly Type[],
): TypeGroup<Type>[] {
  const groups = Map.groupBy(types, groupOf);
  return [...groups]
    .map(([name, all]) => ({ name, types: all }))
    .toSorted((one, other) => one.name.localeCompare(other.name));
}

/** Whether its name, group or description has the text in it, in any case. */
export function isFound(type: Named, text: string): boolean {
  const lower = text.trim().toLowerCase();
  const texts = [type.name, type.description, groupOf(type)];
  return texts.some((each) => each.toLowerCase().includes(lower));
}

/** Returns the wildcards that select several of the names, the widest first. */
export function wildcardsOf(names: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const name of names) {
    for (const { index } of name.matchAll(ENDS)) {
      const wildcard = `${name.slice(0, index + 1)}*`;
      counts.set(wildcard, (counts.get(wildcard) ?? 0) + 1);
    }
  }
  return [...counts].flatMap(([wildcard, count]) => (count > 1 ? [wildcard] : []));
}

/** Returns the entry that selects the event type or the wildcard; undefined when none does. */
export function selectorOf(entries: readonly string[], name: string): string | undefined {
  const isWide = (entry: string): boolean =>
    entry.endsWith('*') && entry !== name && name.startsWith(entry.slice(0, -1));
  return entries.find((entry) => entry === name) ?? entries.find(isWide);
}

/** Returns the lines with the entry added, or without it. */
export function toggled(lines: readonly string[], entry: string): string[] {
  return lines.includes(entry) ? lines.filter((each) => each !== entry) : [...lines, entry];
}
