import { Button, Group, Stack, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { Dialog } from '../../parts/dialog.tsx';
import { Failed } from '../../parts/states.tsx';
import { valueTo } from '../../parts/value-to.ts';

interface Names {
  name: string;
  description: string;
}

interface EditNamedProps {
  kind: 'project' | 'app';
  names: Names;
  change: (names: Names) => Promise<unknown>;
  onChanged: () => void;
}

/** A button with the dialog that changes name and description of a project or an app. */
export function EditNamed({ kind, names, change, onChanged }: EditNamedProps) {
  const [isOpen, setOpen] = useState(false);
  const mutation = useMutation({
    mutationFn: change,
    onSuccess: () => {
      setOpen(false);
      onChanged();
    },
  });
  return (
    <>
      <Button
        variant="default"
        onClick={() => {
          setOpen(true);
        }}
      >
        Edit {kind}
      </Button>
      <Dialog
        title={`Edit ${kind}`}
        isOpen={isOpen}
        close={() => {
          setOpen(false);
        }}
      >
        <NamesForm
          names={names}
          change={mutation.mutate}
          error={mutation.error}
          isPending={mutation.isPending}
        />
      </Dialog>
    </>
  );
}

interface NamesFormProps {
  names: Names;
  change: (names: Names) => void;
  error: Error | null;
  isPending: boolean;
}

function NamesForm({ names, change, error, isPending }: NamesFormProps) {
  const [name, setName] = useState(names.name);
  const [description, setDescription] = useState(names.description);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        change({ name, description });
      }}
    >
      <Stack>
        {error !== null && <Failed error={error} what="save it" />}
        <TextInput label="Name" required maxLength={100} value={name} onChange={valueTo(setName)} />
        <TextInput label="Description" value={description} onChange={valueTo(setDescription)} />
        <Group justify="flex-end">
          <Button type="submit" loading={isPending}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
