/** What runs with every `npm test`, in under four minutes: rounds of one layout, so that they share a stack. */
export const SHORT: readonly string[] = ['F2', 'F5-frozen'];
