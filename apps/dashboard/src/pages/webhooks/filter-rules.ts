import type { Schemas } from '../../api/client.ts';

/* What the filter of a webhook is as text, and what its test sends. */

/** A message to test a filter with, as it was typed. */
export interface TestedMessage {
  payload: string;
  eventType: string;
  tags: string;
}

/** Returns the example of an event type; `{}` without one. */
export const exampleOf = ({ name, example }: ExampleType): TestedMessage => ({
  payload: JSON.stringify(example ?? {}, null, 2),
  eventType: name,
  tags: '',
});

type ExampleType = Pick<Schemas['EventType'], 'name' | 'example'>;

/** Returns the filter as people edit it; '' without one. */
export const filterText = (filter: object | null): string =>
  filter === null ? '' : JSON.stringify(filter, null, 2);

/** Returns what is wrong with a text that is to be a JSON object; null when nothing is, and for no text. */
export function problemOfJson(text: string): string | null {
  if (text.trim() === '') return null;
  const value = parsed(text);
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? null : 'This is no JSON object';
}

/** Returns the value of a field with JSON; null without one. A text that is no JSON goes to the API, which refuses it. */
export const jsonOf = (text: string): unknown => (text === '' ? null : (parsed(text) ?? text));

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the body of the request that tests a filter. Both texts are JSON objects; no payload is `{}`. */
export function testOf(
  filter: string,
  { payload, eventType, tags }: TestedMessage,
): Schemas['TestFilter'] {
  const given = tags
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
  return {
    filter: JSON.parse(filter) as Record<string, unknown>,
    payload: (jsonOf(payload.trim()) ?? {}) as Record<string, unknown>,
    ...(eventType.trim() !== '' && { eventType: eventType.trim() }),
    ...(given.length > 0 && { tags: given }),
  };
}
