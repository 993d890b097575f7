import { Button, Group, NativeSelect, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, dataOf, type Schemas } from '../../api/client.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { valueTo } from '../../parts/form-fields.ts';
import { Failed } from '../../parts/states.tsx';
import { NewKey } from './create-key.tsx';

const GRACES = [
  { value: '0', label: 'not at all: it is refused at once' },
  { value: '3600', label: 'for 1 hour' },
  { value: '86400', label: 'for 1 day' },
  { value: '604800', label: 'for 7 days' },
];

const A_DAY = '86400';

/** Makes a key with the same name and rights. The old one works beside it for a while. */
export function RotateKey({ apiKey: { id, name } }: { apiKey: Schemas['ApiKey'] }) {
  const [isOpen, setOpen] = useState(false);
  const rotate = useRotate(id);
  return (
    <>
      <Button
        variant="default"
        aria-label={`Rotate ${name}`}
        onClick={() => {
          rotate.reset();
          setOpen(true);
        }}
      >
        Rotate
      </Button>
      <Dialog
        title={`Rotate “${name}”`}
        isOpen={isOpen}
        close={() => {
          setOpen(false);
        }}
      >
        {rotate.data !== undefined ? (
          <NewKey text={rotate.data.key ?? ''} />
        ) : (
          <Question rotate={rotate} />
        )}
      </Dialog>
    </>
  );
}

function useRotate(keyId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (graceSeconds: number) => {
      const params = { path: { keyId } };
      return dataOf(api.POST('/api-keys/{keyId}/rotate', { params, body: { graceSeconds } }));
    },
    onSuccess: () => client.invalidateQueries({ queryKey: ['api-keys'] }),
  });
}

function Question({ rotate }: { rotate: ReturnType<typeof useRotate> }) {
  const [grace, setGrace] = useState(A_DAY);
  return (
    <Stack>
      <Text>A new key with the same name and rights takes its place.</Text>
      {rotate.error !== null && <Failed error={rotate.error} what="rotate the key" />}
      <NativeSelect
        label="The old key still works"
        data={GRACES}
        value={grace}
        onChange={valueTo(setGrace)}
      />
      <Group justify="flex-end">
        <Button
          loading={rotate.isPending}
          onClick={() => {
            rotate.mutate(Number(grace));
          }}
        >
          Rotate the key
        </Button>
      </Group>
    </Stack>
  );
}
