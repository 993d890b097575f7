/** Returns the items in slices of at most `size`, in their order; none for no items. */
export function slicesOf<Item>(items: readonly Item[], size: number): Item[][] {
  const slices: Item[][] = [];
  for (let from = 0; from < items.length; from += size) slices.push(items.slice(from, from + size));
  return slices;
}
