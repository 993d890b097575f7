import { Select, TextInput } from '@mantine/core';
import { useDebouncedCallback, useDebouncedValue } from '@mantine/hooks';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { findAppsQuery, type FoundApp, foundAppQuery } from '../api/projects.ts';
import { findWebhooksQuery, webhooksOfQuery } from '../api/webhooks.ts';

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

interface AppSelectProps {
  value: string;
  onChange: (appId: string) => void;
  /** What is shown while none is chosen, such as `All apps`. */
  noneLabel?: string;
}

/** While somebody types, the gateway is not asked for each letter. */
const SELECT_QUIET_MS = 250;

/** Chooses an app of any project, by part of its name, or by its id or uid. */
export function AppSelect({ value, onChange, noneLabel = 'Choose an app' }: AppSelectProps) {
  const [typed, setTyped] = useState('');
  const [text] = useDebouncedValue(typed, SELECT_QUIET_MS);
  const { data: chosen } = useQuery(foundAppQuery(value));
  const shown = chosen ? labelOf(chosen) : value;
  // What is chosen stands in the field as if it were typed.
  const { data, error } = useQuery(findAppsQuery(text === shown ? '' : text.trim()));
  const offered = (data?.apps ?? []).filter(({ id }) => id !== value);
  return (
    <Select
      label="App"
      maw="26rem"
      placeholder={noneLabel}
      searchable
      clearable
      clearButtonProps={{ 'aria-label': `Clear: ${noneLabel}` }}
      value={value === '' ? null : value}
      error={error === null ? undefined : `The apps could not be loaded: ${error.message}`}
      data={[
        ...(value === '' ? [] : [{ value, label: shown }]),
        ...offered.map((app) => ({ value: app.id, label: labelOf(app) })),
      ]}
      // The gateway has chosen them.
      filter={({ options }) => options}
      nothingFoundMessage={data === undefined ? 'Waiting for the apps …' : noAppFound(data.isMore)}
      description={data?.isMore === true ? 'Type part of a name to see more' : undefined}
      onSearchChange={setTyped}
      onChange={(next) => {
        onChange(next ?? '');
      }}
    />
  );
}

/** The gateway looks at the 1,000 oldest apps. */
function noAppFound(isMore: boolean): string {
  return isMore
    ? 'Not among the 1,000 oldest apps: give the id'
    : 'No app has this in its name, or as its uid';
}

function labelOf({ name, projectName }: FoundApp): string {
  return `${projectName} › ${name}`;
}

interface WebhookSelectProps {
  value: string;
  /** Only the webhooks of this app. */
  appId: string | undefined;
  onChange: (webhookId: string) => void;
}

/** Chooses a webhook by part of its URL, name or event types, or by its id or uid. */
export function WebhookSelect({ value, appId, onChange }: WebhookSelectProps) {
  const [typed, setTyped] = useState('');
  const [text] = useDebouncedValue(typed, SELECT_QUIET_MS);
  const { data: chosen } = useQuery(webhooksOfQuery(value === '' ? [] : [value]));
  const shown = chosen?.get(value)?.url ?? value;
  // What is chosen stands in the field as if it were typed.
  const asked = text === shown ? '' : text.trim();
  const { data, error, hasNextPage } = useInfiniteQuery(findWebhooksQuery({ text: asked, appId }));
  const offered = data?.pages[0]?.data.filter(({ id }) => id !== value) ?? [];
  return (
    <Select
      label="Webhook"
      maw="26rem"
      placeholder="All webhooks"
      searchable
      clearable
      clearButtonProps={{ 'aria-label': 'Clear: All webhooks' }}
      value={value === '' ? null : value}
      error={error === null ? undefined : `The webhooks could not be loaded: ${error.message}`}
      data={[
        ...(value === '' ? [] : [{ value, label: shown }]),
        ...offered.map(({ id, url }) => ({ value: id, label: url })),
      ]}
      // The gateway has chosen them.
      filter={({ options }) => options}
      nothingFoundMessage={
        data === undefined ? 'Waiting for the webhooks …' : noWebhookFound(hasNextPage)
      }
      description={hasNextPage ? 'Type part of a URL to see more' : undefined}
      onSearchChange={setTyped}
      onChange={(next) => {
        onChange(next ?? '');
      }}
    />
  );
}

/** The gateway looks at the 1,000 newest webhooks. */
function noWebhookFound(isMore: boolean): string {
  return isMore ? 'Not among the 1,000 newest webhooks: give the id' : 'No webhook has this';
}

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
