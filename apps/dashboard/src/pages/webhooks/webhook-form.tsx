import { Checkbox, NumberInput, Textarea, TextInput } from '@mantine/core';
import type { Problem } from '../../api/failure.ts';
import { headersText, MASK, type WebhookFields } from './webhook-fields.ts';

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
  const hasMask = customHeaders.some(({ value }) => value === MASK);
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
        description={
          hasMask ? `Name: value. ${MASK} keeps the value that is not shown` : 'Name: value'
        }
        rows={2}
        defaultValue={headersText(customHeaders)}
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
