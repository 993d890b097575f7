import { TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useState } from 'react';

/** While somebody types, the list is not asked for each letter. */
const QUIET_MS = 400;

interface FilterInputProps {
  label: string;
  placeholder?: string;
  maxLength?: number;
  value: string | undefined;
  set: (text: string) => void;
}

/** A text that a list is limited to. */
export function FilterInput({ label, placeholder, maxLength = 128, value, set }: FilterInputProps) {
  const [typed, setTyped] = useState(value ?? '');
  const [sent, setSent] = useState(value);
  const [seen, setSeen] = useState(value);
  const setLater = useDebouncedCallback((text: string) => {
    setSent(text.trim());
    set(text.trim());
  }, QUIET_MS);
  if (value !== seen) {
    setSeen(value);
    // Something else than this field has changed it, such as a button that clears filters, or the way back.
    if ((value ?? '') !== sent) {
      setSent(value ?? '');
      setTyped(value ?? '');
    }
  }
  return (
    <TextInput
      label={label}
      placeholder={placeholder}
      maxLength={maxLength}
      value={typed}
      onChange={({ currentTarget }) => {
        setTyped(currentTarget.value);
        setLater(currentTarget.value);
      }}
    />
  );
}

/** The event type of messages, exactly. */
export function EventTypeInput(props: Pick<FilterInputProps, 'value' | 'set'>) {
  return <FilterInput label="Event type" placeholder="order.paid" {...props} />;
}
