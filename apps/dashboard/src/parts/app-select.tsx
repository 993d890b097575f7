import { NativeSelect } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { allAppsQuery } from '../api/all-apps.ts';
import { valueTo } from './value-to.ts';

interface AppSelectProps {
  value: string;
  onChange: (appId: string) => void;
  /** The first entry, such as `All apps`. */
  noneLabel?: string;
}

/** Chooses an app of any project. */
export function AppSelect({ value, onChange, noneLabel = 'Choose an app' }: AppSelectProps) {
  const { data = [], error, isPending } = useQuery(allAppsQuery);
  const known = data.some(({ id }) => id === value);
  return (
    <NativeSelect
      label="App"
      value={value}
      error={error === null ? undefined : `The apps could not be loaded: ${error.message}`}
      onChange={valueTo(onChange)}
    >
      <option value="">{isPending ? 'Waiting for the apps …' : noneLabel}</option>
      {value !== '' && !known && <option value={value}>{value}</option>}
      {data.map(({ id, name, projectName }) => (
        <option key={id} value={id}>
          {projectName} › {name}
        </option>
      ))}
    </NativeSelect>
  );
}
