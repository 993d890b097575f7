import { Button, Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { type GroupRole, peopleSettingsQuery, ROLES, saveGroups } from '../../api/people.ts';
import type { Role } from '../../api/session.ts';
import { valueTo } from '../../parts/form-fields.ts';
import { Section } from '../../parts/page.tsx';
import { Failed, QueryView } from '../../parts/states.tsx';
import styles from './people.module.css';

/** The groups of the issuer that have a role in the company. */
export function Groups() {
  const query = useQuery(peopleSettingsQuery);
  return (
    <Section title="Groups">
      <Text size="sm">
        Whoever is in one of these groups at the issuer comes in with its role; the highest one
        counts. Write a group exactly as the issuer does.
      </Text>
      <QueryView query={query} what="the groups">
        {({ groups }) => <GroupsForm key={JSON.stringify(groups)} stored={groups} />}
      </QueryView>
    </Section>
  );
}

interface Row extends GroupRole {
  /** For React: rows may be equal while somebody types. */
  number: number;
}

/** The rows as they are on the page. */
function useRows(stored: readonly GroupRole[]) {
  const [rows, setRows] = useState<Row[]>(() =>
    stored.map((each, number) => ({ ...each, number })),
  );
  return {
    rows,
    add: () => {
      const number = Math.max(-1, ...rows.map((row) => row.number)) + 1;
      setRows([...rows, { group: '', role: 'viewer', number }]);
    },
    change: (row: Row) => {
      setRows(rows.map((each) => (each.number === row.number ? row : each)));
    },
    remove: (row: Row) => {
      setRows(rows.filter((each) => each !== row));
    },
  };
}

function GroupsForm({ stored }: { stored: readonly GroupRole[] }) {
  const client = useQueryClient();
  const { rows, add, change, remove } = useRows(stored);
  const save = useMutation({
    mutationFn: () => saveGroups(groupsIn(rows)),
    onSuccess: () => client.invalidateQueries({ queryKey: ['people'] }),
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate();
      }}
    >
      <Stack gap="xs">
        {save.error !== null && <Failed error={save.error} what="save the groups" />}
        {rows.map((row, index) => (
          <GroupFields
            key={row.number}
            row={row}
            place={index + 1}
            change={change}
            remove={remove}
          />
        ))}
        <Group>
          <Button variant="default" size="xs" onClick={add}>
            Add a group
          </Button>
          <Button type="submit" size="xs" loading={save.isPending} disabled={isSame(rows, stored)}>
            Save the groups
          </Button>
        </Group>
        <Text size="sm">
          Saving ends the sessions whose role it changes. A person whose only way in was one of
          these groups comes in no more.
        </Text>
      </Stack>
    </form>
  );
}

/** Rows without a group are none. */
function groupsIn(rows: readonly Row[]): GroupRole[] {
  return rows.filter(({ group }) => group !== '').map(({ group, role }) => ({ group, role }));
}

function isSame(rows: readonly Row[], stored: readonly GroupRole[]): boolean {
  const now = groupsIn(rows);
  return (
    now.length === stored.length &&
    now.every(({ group, role }, n) => stored[n]?.group === group && stored[n].role === role)
  );
}

interface GroupFieldsProps {
  row: Row;
  /** From 1. */
  place: number;
  change: (row: Row) => void;
  remove: (row: Row) => void;
}

function GroupFields({ row, place, change, remove }: GroupFieldsProps) {
  return (
    <div className={styles.group}>
      <TextInput
        aria-label={`Group ${place}`}
        placeholder="platform-admins"
        value={row.group}
        onChange={valueTo((group) => {
          change({ ...row, group });
        })}
      />
      <NativeSelect
        aria-label={`Role of group ${place}`}
        data={ROLES}
        value={row.role}
        onChange={valueTo((role) => {
          change({ ...row, role: role as Role });
        })}
      />
      <Button
        variant="default"
        aria-label={`Remove group ${place}`}
        onClick={() => {
          remove(row);
        }}
      >
        Remove
      </Button>
    </div>
  );
}
