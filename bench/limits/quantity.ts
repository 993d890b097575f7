const FACTORS: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** Returns the bytes of a memory quantity of Kubernetes, such as "768Mi". Throws when it is invalid. */
export function bytesOfQuantity(quantity: string): number {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([A-Za-z]*)$/.exec(quantity) ?? [];
  const factor = FACTORS[unit];
  if (amount === undefined || factor === undefined) {
    throw new Error(`"${quantity}" is not a memory quantity`);
  }
  return Math.round(Number(amount) * factor);
}
