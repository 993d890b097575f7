import { Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { findAppsQuery, type FoundApp, foundAppQuery } from '../../api/projects.ts';

interface AppSelectProps {
  value: string;
  onChange: (appId: string) => void;
  /** What is shown while none is chosen, such as `All apps`. */
  noneLabel?: string;
}

/** While somebody types, the gateway is not asked for each letter. */
const QUIET_MS = 250;

/** Chooses an app of any project, by part of its name, or by its id or uid. */
export function AppSelect({ value, onChange, noneLabel = 'Choose an app' }: AppSelectProps) {
  const [typed, setTyped] = useState('');
  const [text] = useDebouncedValue(typed, QUIET_MS);
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
      nothingFoundMessage={data === undefined ? 'Waiting for the apps …' : noneFound(data.isMore)}
      description={data?.isMore === true ? 'Type part of a name to see more' : undefined}
      onSearchChange={setTyped}
      onChange={(next) => {
        onChange(next ?? '');
      }}
    />
  );
}

/** The gateway looks at the 1,000 oldest apps. */
function noneFound(isMore: boolean): string {
  return isMore
    ? 'Not among the 1,000 oldest apps: give the id'
    : 'No app has this in its name, or as its uid';
}

function labelOf({ name, projectName }: FoundApp): string {
  return `${projectName} › ${name}`;
}
