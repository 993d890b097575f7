import { Button, NativeSelect } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { ACTION_WORDS, AUDIT_ACTIONS } from '../../api/words.ts';
import { FilterInput, TimeInput } from '../../parts/filters.tsx';
import { valueTo } from '../../parts/form-fields.ts';
import type { AuditSearch } from '../../search.ts';
import styles from './audit.module.css';

const route = getRouteApi('/audit');

const ACTIONS = [
  { value: '', label: 'Anything' },
  ...AUDIT_ACTIONS.map((value) => ({ value, label: ACTION_WORDS[value] })),
];

/** The filters that the API has, kept in the address. */
export function AuditFilters() {
  const filter = route.useSearch();
  const navigate = route.useNavigate();
  const set =
    (name: keyof AuditSearch) =>
    (value: string): void => {
      void navigate({
        search: (before) => ({ ...before, [name]: value || undefined }),
        replace: true,
      });
    };
  const isAny = Object.keys(filter).length > 0;
  return (
    <div className={styles.filters} key={isAny ? 'filtered' : 'clear'}>
      <NativeSelect
        label="What"
        data={ACTIONS}
        value={filter.action ?? ''}
        onChange={valueTo(set('action'))}
      />
      <FilterInput
        label="Who"
        placeholder="key_…, plnk_…, admin, system"
        value={filter.actor}
        set={set('actor')}
      />
      <FilterInput
        label="To what"
        placeholder="Any id"
        value={filter.targetId}
        set={set('targetId')}
      />
      <TimeInput label="From (your time)" value={filter.from} set={set('from')} />
      <TimeInput label="Until (your time)" value={filter.to} set={set('to')} />
      {isAny && (
        <Button variant="default" onClick={() => void navigate({ search: {} })}>
          Clear filters
        </Button>
      )}
    </div>
  );
}
