import { Button, Checkbox, Group, Stack, Text, Textarea } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/client.ts';
import { importEventTypes } from '../../api/event-types.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Facts } from '../../parts/figures.tsx';
import { valueTo } from '../../parts/form-fields.ts';
import { Failed } from '../../parts/states.tsx';
import { problemOfJson } from '../webhooks/filter-rules.ts';

type Imported = Schemas['ImportedEventTypes'];

/** A button with the dialog that imports the webhooks of an OpenAPI document. */
export function ImportEventTypes({ projectId }: { projectId: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button
        variant="default"
        onClick={() => {
          setOpen(true);
        }}
      >
        Import
      </Button>
      <Dialog
        title="Import event types"
        isOpen={isOpen}
        close={() => {
          setOpen(false);
        }}
      >
        <ImportForm projectId={projectId} />
      </Dialog>
    </>
  );
}

function useImport(projectId: string, text: string, archiveMissing: boolean) {
  const client = useQueryClient();
  return useMutation({
    // The document may be large.
    gcTime: 0,
    mutationFn: (dryRun: boolean) => {
      const document = JSON.parse(text) as Record<string, unknown>;
      return importEventTypes(projectId, { document, archiveMissing, dryRun });
    },
    onSuccess: async (_, dryRun) => {
      if (!dryRun) await client.invalidateQueries({ queryKey: ['event-types'] });
    },
  });
}

/** Shows what would change before anything does. */
function ImportForm({ projectId }: { projectId: string }) {
  const [text, setText] = useState('');
  const [archiveMissing, setArchiveMissing] = useState(false);
  const call = useImport(projectId, text, archiveMissing);
  const problem = problemOfJson(text);
  return (
    <Stack>
      <Text size="sm">
        An OpenAPI document as JSON: 3.1 with <code>webhooks</code>, or 3.0 with{' '}
        <code>x-webhooks</code>. For YAML, use <code>posthorn event-type import</code>.
      </Text>
      <DocumentInput
        text={text}
        problem={problem}
        set={(given) => {
          call.reset();
          setText(given);
        }}
      />
      <Checkbox
        label="Archive the event types that the document does not have"
        checked={archiveMissing}
        onChange={({ currentTarget }) => {
          call.reset();
          setArchiveMissing(currentTarget.checked);
        }}
      />
      {call.error !== null && <Failed error={call.error} what="import the event types" />}
      {call.data && <Changes imported={call.data} isDone={!call.variables} />}
      <Steps call={call} isDocument={text.trim() !== '' && problem === null} />
    </Stack>
  );
}

interface StepsProps {
  call: ReturnType<typeof useImport>;
  isDocument: boolean;
}

function Steps({ call, isDocument }: StepsProps) {
  const isDone = call.isSuccess && !call.variables;
  return (
    <Group justify="flex-end">
      <Button
        variant="default"
        disabled={!isDocument || isDone}
        loading={call.isPending && call.variables}
        onClick={() => {
          call.mutate(true);
        }}
      >
        Show what would change
      </Button>
      <Button
        disabled={!call.isSuccess || isDone}
        loading={call.isPending && !call.variables}
        onClick={() => {
          call.mutate(false);
        }}
      >
        Import
      </Button>
    </Group>
  );
}

interface DocumentInputProps {
  text: string;
  problem: string | null;
  set: (text: string) => void;
}

/** Typed, pasted, or from a file. */
function DocumentInput({ text, problem, set }: DocumentInputProps) {
  return (
    <>
      <input
        type="file"
        accept="application/json,.json"
        aria-label="File with the document"
        onChange={({ currentTarget: { files } }) => void files?.[0]?.text().then(set)}
      />
      <Textarea
        label="Document"
        autosize
        minRows={4}
        maxRows={12}
        spellCheck={false}
        value={text}
        error={problem}
        onChange={valueTo(set)}
      />
    </>
  );
}

/** Of up to 2,000 changes. */
const MOST_SHOWN = 50;

function Changes({ imported, isDone }: { imported: Imported; isDone: boolean }) {
  const { created, updated, archived, unchanged, changes } = imported;
  const counts = `${created} created, ${updated} updated, ${archived} archived, ${unchanged} unchanged`;
  return (
    <>
      <Text role="status">
        {isDone ? `Imported: ${counts}.` : `An import would be: ${counts}.`}
      </Text>
      {changes.length > 0 && (
        <Facts facts={changes.slice(0, MOST_SHOWN).map(({ name, change }) => [name, change])} />
      )}
      {changes.length > MOST_SHOWN && <Text>And {changes.length - MOST_SHOWN} more.</Text>}
    </>
  );
}
