import type { ChangeEvent } from 'react';

type Field = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

/** Returns the handler of a field that passes on what it holds. */
export function valueTo(set: (value: string) => void) {
  return ({ currentTarget }: ChangeEvent<Field>): void => {
    set(currentTarget.value);
  };
}
