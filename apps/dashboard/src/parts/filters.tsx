import { Button, Select, TextInput } from '@mantine/core';
import { useDebouncedCallback, useDebouncedValue } from '@mantine/hooks';
import { MESSAGE_RULES } from '@posthorn/client/rules';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { findAppsQuery, type FoundApp, foundAppQuery } from '../api/projects.ts';
import { findWebhooksQuery, webhooksOfQuery } from '../api/webhooks.ts';
import styles from './parts.module.css';

interface FilterBarProps {
  /** Whether a filter leaves anything out. */
  isFiltered: boolean;
  clear: () => void;
  children: ReactNode;
}

/** The filters above a list, in a row. */
export function FilterBar({ isFiltered, clear, children }: FilterBarProps) {
  return (
    <div className={styles.filters} role="group" aria-label="Filters">
      {children}
      {isFiltered && (
        <Button variant="default" onClick={clear}>
          Clear filters
        </Button>
      )}
    </div>
  );
}

/** While somebody types, the list is not asked for each letter. */
const QUIET_MS = 400;

interface FilterInputProps {
  label: string;
  placeholder?: string;
  maxLength?: number;
  /** For a long label. */
  isWide?: boolean;
  value: string | undefined;
  set: (text: string) => void;
}

/** A text that a list is limited to. */
export function FilterInput({
  label,
  placeholder,
  maxLength = 128,
  isWide = false,
  value,
  set,
}: FilterInputProps) {
  const { typed, setTyped, setSent } = useTyped(value, (text) => text);
  const setLater = useDebouncedCallback((text: string) => {
    setSent(text.trim());
    set(text.trim());
  }, QUIET_MS);
  return (
    <TextInput
      className={isWide ? (styles.wide ?? '') : ''}
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

/** What is typed into a field of a filter, until something else changes the filter: a button that clears it, the way back. */
function useTyped(value = '', show: (value: string) => string) {
  const [typed, setTyped] = useState(() => show(value));
  const [sent, setSent] = useState(value);
  const [seen, setSeen] = useState(value);
  if (value !== seen) {
    setSeen(value);
    if (value !== sent) {
      setSent(value);
      setTyped(show(value));
    }
  }
  return { typed, setTyped, setSent };
}

/** The event type of messages, exactly. */
export function EventTypeInput(props: Pick<FilterInputProps, 'value' | 'set'>) {
  const { maxChars } = MESSAGE_RULES.eventType;
  return (
    <FilterInput label="Event type" placeholder="order.paid" maxLength={maxChars} {...props} />
  );
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
  const { typed, setTyped, setSent } = useTyped(value, localText);
  return (
    <TextInput
      type="datetime-local"
      label={label}
      value={typed}
      onChange={({ currentTarget }) => {
        const ms = Date.parse(currentTarget.value);
        const iso = Number.isNaN(ms) ? '' : new Date(ms).toISOString();
        setTyped(currentTarget.value);
        setSent(iso);
        set(iso);
      }}
    />
  );
}

/** Returns a time as `datetime-local` wants it, without a zone; '' when it is not one. */
export function localText(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return '';
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
