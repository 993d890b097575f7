/** An update without fields changes nothing, `updatedAt` included (docs/contract.md C1.8). */
export function isEmptyUpdate(changes: object): boolean {
  return Object.keys(changes).length === 0;
}
