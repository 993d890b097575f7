import { TextInput } from '@mantine/core';

interface TimeInputProps {
  label: string;
  /** ISO 8601. */
  value: string | undefined;
  /** Called with ISO 8601, or '' for no time. */
  set: (iso: string) => void;
}

/** A time in the zone of whoever looks. */
export function TimeInput({ label, value, set }: TimeInputProps) {
  return (
    <TextInput
      type="datetime-local"
      label={label}
      defaultValue={value === undefined ? '' : localText(value)}
      onChange={({ currentTarget }) => {
        const ms = Date.parse(currentTarget.value);
        set(Number.isNaN(ms) ? '' : new Date(ms).toISOString());
      }}
    />
  );
}

/** Returns a time as `datetime-local` wants it, without a zone; '' when it is not one. */
function localText(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return '';
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
