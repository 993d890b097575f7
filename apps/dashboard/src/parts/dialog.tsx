import { Drawer, Modal } from '@mantine/core';
import type { ReactNode } from 'react';
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
