import { z } from 'zod';

/** A time as text, in milliseconds since 1970. */
export const timeOption = z.iso
  .datetime({
    offset: true,
    error: 'must be an ISO time with a zone, such as 2026-08-01T09:30:00Z',
  })
  .transform((text) => Date.parse(text));

/** Throws an error that names every invalid option. */
export function parseOptions<Schema extends z.ZodType>(
  schema: Schema,
  input: object,
): z.output<Schema> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const problems = result.error.issues.map(({ path, message }) => {
    return `${optionOf(path.join('.'))} ${message}.`;
  });
  throw new Error(problems.join('\n'));
}

function optionOf(name: string): string {
  return name === 'id'
    ? 'id'
    : `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
