/** What people change most. The API has more: see the documentation. */
export interface WebhookFields {
  url: string;
  name: string;
  eventTypes: readonly string[];
  rateLimitPerSecond: number | null;
  timeoutSeconds: number | null;
  customHeaders: readonly { key: string; value: string }[];
  disabled: boolean;
}

export const NEW_WEBHOOK: WebhookFields = {
  url: '',
  name: '',
  eventTypes: [],
  rateLimitPerSecond: null,
  timeoutSeconds: null,
  customHeaders: [],
  disabled: false,
};

/** Returns the body of a request from what was typed. */
export function readWebhookForm(form: FormData) {
  const textOf = (name: string): string => {
    const value = form.get(name);
    return typeof value === 'string' ? value.trim() : '';
  };
  const numberOf = (name: string): number | null =>
    textOf(name) === '' ? null : Number(textOf(name));
  return {
    url: textOf('url'),
    ...(textOf('name') !== '' && { name: textOf('name') }),
    eventTypes: linesOf(textOf('eventTypes')),
    rateLimitPerSecond: numberOf('rateLimitPerSecond'),
    timeoutSeconds: numberOf('timeoutSeconds'),
    customHeaders: linesOf(textOf('customHeaders')).map(headerOf),
    disabled: form.get('isEnabled') === null,
  };
}

/** Returns what was changed of the stored fields: what was not touched is not sent, and so cannot be damaged. */
export function changedFields(
  form: FormData,
  stored: WebhookFields,
): Partial<ReturnType<typeof readWebhookForm>> {
  const before: Record<string, unknown> = {
    ...stored,
    customHeaders: linesOf(headersText(stored.customHeaders)).map(headerOf),
  };
  const isChanged = ([name, value]: [string, unknown]): boolean =>
    JSON.stringify(value) !== JSON.stringify(before[name]);
  return Object.fromEntries(Object.entries(readWebhookForm(form)).filter(isChanged));
}

/** One header on each line. */
export const headersText = (headers: WebhookFields['customHeaders']): string =>
  headers.map(({ key, value }) => `${key}: ${value}`).join('\n');

export const MASK = '********';

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function headerOf(line: string): { key: string; value: string } {
  const [key = '', ...rest] = line.split(':');
  return { key: key.trim(), value: rest.join(':').trim() };
}
