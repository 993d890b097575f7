/** The program is in a state that it excludes: a bug. Repeating the step would fail in the same way. */
export class ImpossibleError extends Error {
  override readonly name = 'ImpossibleError';
}

/**
 * Returns the value of a key that the map must have, where a default would hide a bug. Throws an
 * ImpossibleError that names the map (`what`) and the key.
 */
export function required<Key, Value>(
  map: ReadonlyMap<Key, Value>,
  key: Key,
  what: string,
): NonNullable<Value> {
  const value = map.get(key);
  if (value === undefined || value === null) {
    throw new ImpossibleError(`no ${what} for ${String(key)}`);
  }
  return value;
}

/** Returns the item at an index that the list must have; throws as `required` does. */
export function requiredAt<Item>(
  list: readonly Item[],
  index: number,
  what: string,
): NonNullable<Item> {
  const item = list[index];
  if (item === undefined || item === null)
    throw new ImpossibleError(`no ${what} at index ${index}`);
  return item;
}
