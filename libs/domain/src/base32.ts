/** Crockford's base 32, lower case: no i, l, o, u, sorts like the number it spells. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** Spells `value` (an integer from 0 to 2^53 - 1) in exactly `length` characters, most significant first. */
export function toBase32(value: number, length: number): string {
  let text = '';
  let rest = value;
  for (let i = 0; i < length; i += 1) {
    text = ALPHABET.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

/** The integer that a text of this alphabet spells; at most 2^53 - 1. */
export function fromBase32(text: string): number {
  let value = 0;
  for (const char of text) value = value * 32 + ALPHABET.indexOf(char);
  return value;
}
