/** One line of the calculation, as it is printed. */
export interface Line {
  what: string;
  /** Numbers with `× ÷ + ^` and the words that say what they are; of a choice, its reason. */
  how: string;
  /** A choice is a whole number that was picked for a reason, and not the value of `how`. */
  sign: '=' | '→';
  value: number;
  unit: string;
}

export interface Section {
  title: string;
  lines: Line[];
}

/** Collects the lines of a calculation. Each is written once: its words are printed, its numbers and signs calculated. */
export function createSheet() {
  const sections: Section[] = [];
  const add = (line: Line): number => {
    sections.at(-1)?.lines.push(line);
    return line.value;
  };
  return {
    sections,
    section: (title: string): void => void sections.push({ title, lines: [] }),
    /** Tags a template such as `days: ${hours} hours ÷ 24 = days`, and returns its value. */
    line: (words: TemplateStringsArray, ...values: number[]): number => {
      const numbers = words.flatMap((text, index) => [
        ...(text.replaceAll(',', '').match(/[\d.]+|[×÷+^()]/g) ?? []),
        ...values.slice(index, index + 1),
      ]);
      const printed = String.raw({ raw: words }, ...values.map(figure));
      const [, what = '', how = '', unit = ''] = /^(.*?): (.*) = (.*)$/.exec(printed) ?? [];
      return add({ what, how, sign: '=', value: evaluate(numbers.join(' ')), unit });
    },
    choice: (what: string, how: string, value: number, unit: string): number =>
      add({ what, how, sign: '→', value, unit }),
  };
}

/** Parentheses come first, then the products from left to right, then their sum. */
function evaluate(text: string): number {
  const [all, inner] = /\(([^()]*)\)/.exec(text) ?? [];
  if (all !== undefined && inner !== undefined) {
    return evaluate(text.replace(all, String(evaluate(inner))));
  }
  const products = text.split('+').map((each) => {
    const [first, ...others] = each.trim().split(/ +(?=[×÷^])/);
    return others.reduce((value, factor) => {
      const number = Number(factor.slice(1));
      if (factor.startsWith('×')) return value * number;
      return factor.startsWith('÷') ? value / number : value ** number;
    }, Number(first));
  });
  return products.reduce((sum, each) => sum + each, 0);
}

/** Returns a number as it is printed: four significant digits, thousands with a comma. */
export function figure(value: number): string {
  return value.toLocaleString('en-US', { maximumSignificantDigits: 4 });
}
