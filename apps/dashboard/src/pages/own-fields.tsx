import { ActionIcon, Button, TextInput } from '@mantine/core';
import { useRef, useState } from 'react';
import type { Fact } from '../parts/figures.tsx';
import {
  type Entry,
  entryProblem,
  type ErrorOf,
  METADATA_RULE,
  type OwnFields,
  UID_RULE,
} from '../parts/form-fields.ts';
import { CrossIcon } from '../parts/icons.tsx';
import { Copyable, None } from '../parts/values.tsx';
import { useSession } from '../session/session-context.ts';
import styles from '../parts/parts.module.css';

/** The own fields among the facts of something. The portal does not show uids. */
export function useOwnFacts({ uid, metadata }: OwnFields): Fact[] {
  const { kind } = useSession();
  const entries = Object.entries(metadata);
  const shown = entries.map(([key, value]) => (
    <div key={key}>
      {key}: <Copyable text={value} name={`metadata ${key}`} />
    </div>
  ));
  return [
    ...(kind === 'portal'
      ? []
      : [
          [
            'Uid',
            uid === null ? <None key="uid" /> : <Copyable key="uid" text={uid} name="uid" />,
          ] as const,
        ]),
    ['Metadata', entries.length === 0 ? <None key="metadata" /> : shown],
  ];
}

interface OwnInputsProps {
  kind: 'project' | 'app' | 'webhook';
  stored: OwnFields;
  errorOf: ErrorOf;
}

/** The own id of a client. A visitor of the portal cannot change it (docs/contract.md C5.12). */
export function UidInput({ kind, stored, errorOf }: OwnInputsProps) {
  const { kind: session } = useSession();
  if (session === 'portal') return null;
  return (
    <TextInput
      name="uid"
      label="Uid"
      description={`Your own id of the ${kind}: uid: and this text stand for its id in every call`}
      placeholder="customer-17"
      autoComplete="off"
      spellCheck={false}
      maxLength={UID_RULE.maxChars}
      defaultValue={stored.uid ?? ''}
      error={errorOf('uid')}
    />
  );
}

interface Row extends Entry {
  /** Keeps the fields of a row together while others are removed. */
  id: number;
}

/**
 * Texts of the client, one row for each. The form gets them from one hidden field, as JSON: a visible field would lose
 * the line breaks of a value that was never touched.
 */
export function MetadataInput({ stored, errorOf }: Omit<OwnInputsProps, 'kind'>) {
  const [rows, setRows] = useState<readonly Row[]>(() =>
    Object.entries(stored.metadata).map(([key, value], id) => ({ id, key, value })),
  );
  const addButton = useRef<HTMLButtonElement>(null);
  const error = errorOf('metadata');
  const isFull = rows.length >= METADATA_RULE.maxEntries;
  const add = (): void => {
    setRows([...rows, { id: Math.max(-1, ...rows.map(({ id }) => id)) + 1, key: '', value: '' }]);
  };
  return (
    <fieldset className={styles.metadata}>
      <legend>Metadata</legend>
      <p className={styles.hint}>
        Your own texts about it, shown here. Deliveries do not have them.
      </p>
      <input type="hidden" name="metadata" value={JSON.stringify(rows)} />
      {rows.map((row, index) => (
        <MetadataRow
          key={row.id}
          row={row}
          number={index + 1}
          problem={entryProblem(row, rows)}
          set={(typed) => {
            setRows(rows.map((each) => (each === row ? { ...row, ...typed } : each)));
          }}
          remove={() => {
            setRows(rows.filter((each) => each !== row));
            addButton.current?.focus();
          }}
        />
      ))}
      {error !== undefined && (
        <p className={styles.fieldError} role="alert">
          {error}
        </p>
      )}
      <Button ref={addButton} variant="default" size="xs" disabled={isFull} onClick={add}>
        {isFull ? `There are ${METADATA_RULE.maxEntries}, the most` : 'Add metadata'}
      </Button>
    </fieldset>
  );
}

interface MetadataRowProps {
  row: Row;
  number: number;
  problem: string | null;
  set: (typed: Partial<Entry>) => void;
  remove: () => void;
}

function MetadataRow({ row: { key, value }, number, problem, set, remove }: MetadataRowProps) {
  return (
    <div className={styles.metadataRow}>
      <TextInput
        // The browser does not send a form with a problem.
        ref={(input) => input?.setCustomValidity(problem ?? '')}
        aria-label={`Metadata key ${number}`}
        placeholder="Key"
        maxLength={METADATA_RULE.parts.key.maxChars}
        autoFocus={key === '' && value === ''}
        value={key}
        error={problem}
        onChange={({ currentTarget }) => {
          set({ key: currentTarget.value });
        }}
      />
      <TextInput
        aria-label={`Metadata value ${number}`}
        placeholder="Value"
        maxLength={METADATA_RULE.parts.value.maxChars}
        value={value}
        onChange={({ currentTarget }) => {
          set({ value: currentTarget.value });
        }}
      />
      <ActionIcon
        variant="default"
        size="input-sm"
        aria-label={`Remove metadata ${key || number}`}
        onClick={remove}
      >
        <CrossIcon />
      </ActionIcon>
    </div>
  );
}
