/** One line of the calculation. */
export interface Line {
  what: string;
  /** Numbers with `× ÷ + −` and the words that say what they are; of a choice, its reason. */
  how: string;
  value: number;
  unit: string;
  /** A choice is a whole number that was picked for a reason, and not the value of `how`. */
  kind: 'product' | 'choice';
}

export interface Section {
  title: string;
  lines: Line[];
}

export function product(what: string, how: string, value: number, unit: string): Line {
  return { what, how, value, unit, kind: 'product' };
}

export function choice(what: string, how: string, value: number, unit: string): Line {
  return { what, how, value, unit, kind: 'choice' };
}

/** Returns a number as it is printed: four significant digits, thousands with a comma. */
export function figure(value: number): string {
  return value.toLocaleString('en-US', { maximumSignificantDigits: 4 });
}
