import { Button, Group, NativeSelect, Stack, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { Dialog } from '../../parts/dialog.tsx';
import { Failed } from '../../parts/states.tsx';

export interface Named {
  name: string;
  description?: string;
  environment: 'development' | 'production';
}

interface CreateNamedProps {
  kind: 'project' | 'app';
  create: (body: Named) => Promise<{ id: string }>;
  onCreated: (id: string) => void;
}

/** A button with the dialog that makes a project or an app. */
export function CreateNamed({ kind, create, onCreated }: CreateNamedProps) {
  const [isOpen, setOpen] = useState(false);
  const mutation = useMutation({
    mutationFn: create,
    onSuccess: ({ id }) => {
      setOpen(false);
      onCreated(id);
    },
  });
  return (
    <>
      <Button
        onClick={() => {
          setOpen(true);
        }}
      >
        Create {kind}
      </Button>
      <Dialog
        title={`Create ${kind === 'app' ? 'an app' : 'a project'}`}
        isOpen={isOpen}
        close={() => {
          setOpen(false);
        }}
      >
        <NamedForm
          kind={kind}
          create={mutation.mutate}
          error={mutation.error}
          isPending={mutation.isPending}
        />
      </Dialog>
    </>
  );
}

interface NamedFormProps {
  kind: CreateNamedProps['kind'];
  create: (body: Named) => void;
  error: Error | null;
  isPending: boolean;
}

function NamedForm({ kind, create, error, isPending }: NamedFormProps) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create(readNamed(new FormData(event.currentTarget)));
      }}
    >
      <Stack>
        {error !== null && <Failed error={error} what={`create the ${kind}`} />}
        <TextInput name="name" label="Name" required maxLength={100} data-autofocus />
        <TextInput name="description" label="Description" />
        <NativeSelect name="environment" label="Environment" data={['development', 'production']} />
        <Group justify="flex-end">
          <Button type="submit" loading={isPending}>
            Create {kind}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function readNamed(form: FormData): Named {
  const text = (name: string): string => {
    const value = form.get(name);
    return typeof value === 'string' ? value.trim() : '';
  };
  return {
    name: text('name'),
    ...(text('description') !== '' && { description: text('description') }),
    environment: text('environment') === 'production' ? 'production' : 'development',
  };
}
