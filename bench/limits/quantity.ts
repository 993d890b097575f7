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

/** Bytes of an amount of memory as Kubernetes writes it: "768Mi". Throws when it is none. */
export function bytesOfQuantity(quantity: string): number {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([A-Za-z]*)$/.exec(quantity) ?? [];
  const factor = FACTORS[unit];
  if (amount === undefined || factor === undefined) {
    throw new Error(`"${quantity}" is no amount of memory`);
  }
  return Math.round(Number(amount) * factor);
}
