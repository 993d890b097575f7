import { TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';

/** While somebody types, the list is not asked for each letter. */
const QUIET_MS = 400;
const MOST_CHARS = 128;

interface EventTypeInputProps {
  value: string | undefined;
  set: (eventType: string) => void;
}

/** The event type of messages, exactly. */
export function EventTypeInput({ value, set }: EventTypeInputProps) {
  const setLater = useDebouncedCallback((text: string) => {
    set(text.trim());
  }, QUIET_MS);
  return (
    <TextInput
      label="Event type"
      placeholder="order.paid"
      maxLength={MOST_CHARS}
      defaultValue={value ?? ''}
      onChange={({ currentTarget }) => {
        setLater(currentTarget.value);
      }}
    />
  );
}
