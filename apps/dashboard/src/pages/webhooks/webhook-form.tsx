import { Checkbox, NumberInput, Textarea, TextInput } from '@mantine/core';
import type { Problem } from '../../api/failure.ts';

/** What people change most. The API has more: see the documentation. */
export interface WebhookFields {
  url: string;
  name: string;
  eventTypes: readonly string[];
  rateLimitPerSecond: number | null;
  customHeaders: readonly { key: string; value: string }[];
  disabled: boolean;
}

export const NEW_WEBHOOK: WebhookFields = {
  url: '',
  name: '',
  eventTypes: [],
  rateLimitPerSecond: null,
  customHeaders: [],
  disabled: false,
};

/** Returns the body of a request from what was typed. */
export function readWebhookForm(form: FormData) {
  const textOf = (name: string): string => {
    const value = form.get(name);
    return typeof value === 'string' ? value.trim() : '';
  };
  const rate = textOf('rateLimitPerSecond');
  return {
    url: textOf('url'),
    ...(textOf('name') !== '' && { name: textOf('name') }),
    eventTypes: linesOf(textOf('eventTypes')),
    rateLimitPerSecond: rate === '' ? null : Number(rate),
    customHeaders: linesOf(textOf('customHeaders')).map(headerOf),
    disabled: form.get('isEnabled') === null,
  };
}

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

interface FieldsProps {
  fields: WebhookFields;
  problems: readonly Problem[];
}

/** The fields of a webhook, with what is wrong with each. */
export function WebhookFormFields({ fields, problems }: FieldsProps) {
  const errorOf = (name: string): string | undefined =>
    problems.find(({ path }) => path === name || path.startsWith(`${name}.`))?.message;
  return (
    <>
      <TextInput
        name="url"
        type="url"
        label="URL"
        description="Where messages are sent with POST"
        placeholder="https://shop.example/webhooks"
        required
        defaultValue={fields.url}
        error={errorOf('url')}
      />
      <TextInput name="name" label="Name" defaultValue={fields.name} error={errorOf('name')} />
      <Textarea
        name="eventTypes"
        label="Event types, one on each line"
        description="Leave it empty to receive all messages of the app"
        rows={3}
        defaultValue={fields.eventTypes.join('\n')}
        error={errorOf('eventTypes')}
      />
      <LimitFields fields={fields} errorOf={errorOf} />
    </>
  );
}

interface LimitFieldsProps {
  fields: WebhookFields;
  errorOf: (name: string) => string | undefined;
}

function LimitFields({ fields, errorOf }: LimitFieldsProps) {
  const { rateLimitPerSecond, customHeaders, disabled } = fields;
  return (
    <>
      <NumberInput
        name="rateLimitPerSecond"
        label="Most attempts per second"
        description="Empty for no limit"
        min={1}
        max={10_000}
        hideControls
        defaultValue={rateLimitPerSecond ?? ''}
        error={errorOf('rateLimitPerSecond')}
      />
      <Textarea
        name="customHeaders"
        label="Headers to add, one on each line"
        description="Name: value"
        rows={2}
        defaultValue={customHeaders.map(({ key, value }) => `${key}: ${value}`).join('\n')}
        error={errorOf('customHeaders')}
      />
      <Checkbox
        name="isEnabled"
        label="Enabled"
        description="Disabling cancels what is pending. Later messages are not delivered here."
        defaultChecked={!disabled}
      />
    </>
  );
}
