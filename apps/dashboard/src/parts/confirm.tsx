import { Button, Group, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { Dialog } from './dialog.tsx';
import { Failed } from './states.tsx';

interface ConfirmProps {
  /** On the button, and the title of the question: `Delete webhook`. */
  action: string;
  /** What will happen, in one sentence or two. */
  consequence: string;
  perform: () => Promise<unknown>;
  onDone?: () => void;
  isDangerous?: boolean;
}

/** A button that asks before it acts, and says what will go. */
export function Confirm({
  action,
  consequence,
  perform,
  onDone,
  isDangerous = true,
}: ConfirmProps) {
  const [isOpen, setOpen] = useState(false);
  const close = (): void => {
    setOpen(false);
  };
  const mutation = useMutation({
    mutationFn: perform,
    onSuccess: () => {
      close();
      onDone?.();
    },
  });
  const act = (): void => {
    mutation.mutate();
  };
  return (
    <>
      <Button
        variant="default"
        onClick={() => {
          mutation.reset();
          setOpen(true);
        }}
      >
        {action}
      </Button>
      <Dialog title={`${action}?`} isOpen={isOpen} close={close}>
        <Text mb="md">{consequence}</Text>
        {mutation.error !== null && <Failed error={mutation.error} what={action.toLowerCase()} />}
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={close}>
            Keep it as it is
          </Button>
          <Button color={isDangerous ? 'red' : 'blue'} loading={mutation.isPending} onClick={act}>
            {action}
          </Button>
        </Group>
      </Dialog>
    </>
  );
}
