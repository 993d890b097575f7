/** Groups entries by their topic, and returns what `toGroup` makes of each group, in the order of their first entries. */
export function byTopic<Entry extends { topic: string }, Group>(
  entries: readonly Entry[],
  toGroup: (topic: string, ofTopic: Entry[]) => Group,
): Group[] {
  const grouped = Map.groupBy(entries, ({ topic }) => topic);
  return [...grouped].map(([topic, ofTopic]) => toGroup(topic, ofTopic));
}
