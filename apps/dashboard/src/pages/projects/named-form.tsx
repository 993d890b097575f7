import { Button, Group, NativeSelect, Stack, TextInput } from '@mantine/core';
import { APP_RULES } from '@posthorn/client/rules';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api, dataOf, type Schemas } from '../../api/client.ts';
import { toFailure } from '../../api/failure.ts';
import { Dialog } from '../../parts/dialog.tsx';
import {
  changedOwnFields,
  errorIn,
  type ErrorOf,
  isAtOneOf,
  NO_OWN_FIELDS,
  type OwnFields,
  readOwnFields,
} from '../../parts/form-fields.ts';
import { Failed } from '../../parts/states.tsx';
import { MetadataInput, UidInput } from '../own-fields.tsx';

type Kind = 'project' | 'app';

/** The rules of projects are the same. */
const { environment: ENVIRONMENT } = APP_RULES;

interface Named extends Partial<OwnFields> {
  name: string;
  description?: string;
  environment: (typeof ENVIRONMENT.choices)[number];
}

interface CreateNamedProps {
  kind: Kind;
  create: (body: Named) => Promise<{ id: string }>;
  onCreated: (id: string) => void;
}

/** A button with the dialog that makes a project or an app. */
function CreateNamed({ kind, create, onCreated }: CreateNamedProps) {
  return (
    <NamedDialog
      kind={kind}
      title={`Create ${kind === 'app' ? 'an app' : 'a project'}`}
      action={`Create ${kind}`}
      failed={`create the ${kind}`}
      stored={null}
      send={(form) => create(readNew(form))}
      onSent={({ id }) => {
        onCreated(id);
      }}
    />
  );
}

interface StoredNames extends OwnFields {
  name: string;
  description?: string;
}

type Changes = Partial<OwnFields> & { name: string; description: string };

interface EditNamedProps {
  kind: Kind;
  stored: StoredNames;
  change: (changes: Changes) => Promise<unknown>;
  onChanged: () => void;
}

/** A button with the dialog that changes what a project or an app is called. */
export function EditNamed({ kind, stored, change, onChanged }: EditNamedProps) {
  return (
    <NamedDialog
      kind={kind}
      title={`Edit ${kind}`}
      action="Save"
      failed="save it"
      stored={stored}
      send={(form, filled) =>
        change({
          name: textIn(form, 'name'),
          description: textIn(form, 'description'),
          ...changedOwnFields(form, filled ?? stored),
        })
      }
      onSent={onChanged}
    />
  );
}

interface NamedDialogProps<Sent> {
  kind: Kind;
  title: string;
  /** On the button that sends the form. */
  action: string;
  failed: string;
  /** Null for a new one. */
  stored: StoredNames | null;
  /** Also takes what the fields were filled with: somebody else may have changed what is stored since. */
  send: (form: FormData, filled: StoredNames | null) => Promise<Sent>;
  onSent: (sent: Sent) => void;
}

function NamedDialog<Sent>({ send, onSent, ...shown }: NamedDialogProps<Sent>) {
  const { kind, title, stored } = shown;
  const [isOpen, setOpen] = useState(false);
  const [filled, setFilled] = useState(stored);
  const mutation = useMutation({
    mutationFn: (form: FormData) => send(form, filled),
    onSuccess: (sent) => {
      setOpen(false);
      onSent(sent);
    },
  });
  return (
    <>
      <Button
        variant={stored === null ? 'filled' : 'default'}
        onClick={() => {
          mutation.reset();
          setFilled(stored);
          setOpen(true);
        }}
      >
        {stored === null ? `Create ${kind}` : `Edit ${kind}`}
      </Button>
      <Dialog
        title={title}
        isOpen={isOpen}
        close={() => {
          setOpen(false);
        }}
      >
        <form
          onSubmit={(event) => {
            event.preventDefault();
            mutation.mutate(new FormData(event.currentTarget));
          }}
        >
          <NamedFields
            {...shown}
            stored={filled}
            error={mutation.error}
            isPending={mutation.isPending}
          />
        </form>
      </Dialog>
    </>
  );
}

interface NamedFieldsProps extends Omit<NamedDialogProps<never>, 'title' | 'send' | 'onSent'> {
  error: Error | null;
  isPending: boolean;
}

const hasField = isAtOneOf(['name', 'description', 'uid', 'metadata']);

function NamedFields({ kind, action, failed, stored, error, isPending }: NamedFieldsProps) {
  const problems = error === null ? [] : toFailure(error).problems;
  const errorOf: ErrorOf = (field) => errorIn(problems, field);
  const own = { stored: stored ?? NO_OWN_FIELDS, errorOf };
  return (
    <Stack>
      {error !== null && <Failed error={error} what={failed} isAtField={hasField} />}
      <TextInput
        name="name"
        label="Name"
        required
        maxLength={APP_RULES.name.maxChars}
        data-autofocus
        defaultValue={stored?.name}
        error={errorOf('name')}
      />
      <TextInput
        name="description"
        label="Description"
        defaultValue={stored?.description}
        error={errorOf('description')}
      />
      {stored === null && (
        <NativeSelect name="environment" label="Environment" data={ENVIRONMENT.choices} />
      )}
      <UidInput kind={kind} {...own} />
      <MetadataInput {...own} />
      <Group justify="flex-end">
        <Button type="submit" loading={isPending}>
          {action}
        </Button>
      </Group>
    </Stack>
  );
}

function readNew(form: FormData): Named {
  const description = textIn(form, 'description');
  return {
    name: textIn(form, 'name'),
    ...(description !== '' && { description }),
    environment:
      ENVIRONMENT.choices.find((each) => each === textIn(form, 'environment')) ??
      ENVIRONMENT.default,
    ...readOwnFields(form),
  };
}

function textIn(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === 'string' ? value.trim() : '';
}

export function CreateProject() {
  const client = useQueryClient();
  const navigate = useNavigate();
  return (
    <CreateNamed
      kind="project"
      create={(body: Named) => dataOf(api.POST('/projects', { body }))}
      onCreated={(projectId) => {
        void client.invalidateQueries({ queryKey: ['projects'] });
        void navigate({ to: '/projects/$projectId', params: { projectId } });
      }}
    />
  );
}

export function CreateApp({ projectId }: { projectId: string }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const create = (body: Named): Promise<Schemas['App']> =>
    dataOf(api.POST('/apps', { body: { description: '', ...body, projectId } }));
  return (
    <CreateNamed
      kind="app"
      create={create}
      onCreated={(appId) => {
        void client.invalidateQueries({ queryKey: ['apps'] });
        void navigate({ to: '/apps/$appId', params: { appId } });
      }}
    />
  );
}
