import { Button, Drawer, Group, Modal, Text } from '@mantine/core';
import { useMutation, type UseMutationResult } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { Failed } from './states.tsx';
import styles from './parts.module.css';

interface DialogProps {
  title: string;
  isOpen: boolean;
  close: () => void;
  children: ReactNode;
}

/**
 * A question or a form above the page. Its head is no `header`, of which a page has one. Locking the scroll
 * bar would insert a style element, which the content security policy forbids.
 */
export function Dialog({ title, isOpen, close, children }: DialogProps) {
  return (
    <Modal.Root opened={isOpen} onClose={close} size="lg" lockScroll={false}>
      <Modal.Overlay />
      <Modal.Content>
        <Modal.Body>
          <div className={styles.dialogHead}>
            <Modal.Title className={styles.dialogTitle}>{title}</Modal.Title>
            <Modal.CloseButton aria-label="Close" />
          </div>
          {children}
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

/** The same at the right edge, for something that is looked at beside the page. */
export function SidePanel({ title, isOpen, close, children }: DialogProps) {
  const size = 'min(46rem, 100%)';
  return (
    <Drawer.Root opened={isOpen} onClose={close} position="right" size={size} lockScroll={false}>
      <Drawer.Overlay />
      <Drawer.Content>
        <Drawer.Body>
          <div className={styles.dialogHead}>
            <Drawer.Title className={styles.dialogTitle}>{title}</Drawer.Title>
            <Drawer.CloseButton aria-label="Close" />
          </div>
          {children}
        </Drawer.Body>
      </Drawer.Content>
    </Drawer.Root>
  );
}

interface ConfirmProps {
  /** On the button, and the title of the question: `Delete webhook`. */
  action: string;
  /** What it is done to, where a page has several: the question and the name of the button say it. */
  about?: { kind: string; name: string };
  /** What will happen, in one sentence or two. */
  consequence: string;
  perform: () => Promise<unknown>;
  onDone?: () => void;
  isDangerous?: boolean;
  /** Small in the rows of a table. */
  size?: 'xs' | 'sm';
}

/** A button that asks before it acts, and says what will go. */
export function Confirm({
  action,
  about,
  consequence,
  perform,
  onDone,
  isDangerous = true,
  size = 'sm',
}: ConfirmProps) {
  const [isOpen, setOpen] = useState(false);
  const { button, expectToGo } = useFocusAfter();
  const whole = about ? `${action} ${about.kind} “${about.name}”` : action;
  const close = (): void => {
    setOpen(false);
  };
  const mutation = useMutation({
    mutationFn: perform,
    onSuccess: () => {
      close();
      expectToGo();
      onDone?.();
    },
  });
  return (
    <>
      <Button
        ref={button}
        size={size}
        variant="default"
        aria-label={about && `${action} ${about.name}`}
        onClick={() => {
          mutation.reset();
          setOpen(true);
        }}
      >
        {action}
      </Button>
      <Dialog title={`${whole}?`} isOpen={isOpen} close={close}>
        <Text mb="md">{consequence}</Text>
        {mutation.error !== null && (
          <Failed error={mutation.error} what={whole.charAt(0).toLowerCase() + whole.slice(1)} />
        )}
        <Answers action={action} isDangerous={isDangerous} mutation={mutation} close={close} />
      </Dialog>
    </>
  );
}

interface AnswersProps {
  action: string;
  isDangerous: boolean;
  mutation: Pick<UseMutationResult<unknown, Error, void>, 'isPending' | 'mutate'>;
  close: () => void;
}

function Answers({ action, isDangerous, mutation, close }: AnswersProps) {
  const act = (): void => {
    mutation.mutate();
  };
  return (
    <Group justify="flex-end" mt="md">
      <Button variant="default" onClick={close}>
        Keep it as it is
      </Button>
      <Button color={isDangerous ? 'red' : 'blue'} loading={mutation.isPending} onClick={act}>
        {action}
      </Button>
    </Group>
  );
}

/**
 * Once something is done, the button may go with what it was done to, and the focus with the button. Then the heading of
 * its section, or of the page, gets it.
 */
function useFocusAfter() {
  const button = useRef<HTMLButtonElement>(null);
  const heading = useRef<HTMLElement | null>(null);
  useEffect(
    () => () => {
      if (document.activeElement === document.body) heading.current?.focus();
    },
    [],
  );
  const expectToGo = (): void => {
    heading.current = headingOf(button.current);
    // Not by Tab: it is nothing to use.
    if (heading.current !== null) heading.current.tabIndex = -1;
  };
  return { button, expectToGo };
}

function headingOf(element: Element | null): HTMLElement | null {
  const section = element?.closest('section') ?? document.querySelector('main');
  return section?.querySelector<HTMLElement>('h1, h2') ?? null;
}
