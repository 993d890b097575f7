import { TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';

/** While somebody types, the list is not asked for each letter. */
const QUIET_MS = 400;
const MOST_CHARS = 128;

interface FilterInputProps {
  label: string;
  placeholder?: string;
  value: string | undefined;
  set: (text: string) => void;
}

/** A text that a list is limited to. */
export function FilterInput({ label, placeholder, value, set }: FilterInputProps) {
  const setLater = useDebouncedCallback((text: string) => {
    set(text.trim());
  }, QUIET_MS);
  return (
    <TextInput
      label={label}
      placeholder={placeholder}
      maxLength={MOST_CHARS}
      defaultValue={value ?? ''}
      onChange={({ currentTarget }) => {
        setLater(currentTarget.value);
      }}
    />
  );
}

/** The event type of messages, exactly. */
export function EventTypeInput(props: Pick<FilterInputProps, 'value' | 'set'>) {
  return <FilterInput label="Event type" placeholder="order.paid" {...props} />;
}
