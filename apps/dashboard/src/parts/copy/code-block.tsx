import { Button } from '@mantine/core';
import { useCopy } from './use-copy.ts';
import styles from '../parts.module.css';

/** Text as it is, with a button that copies it. Can be scrolled with the keyboard. */
export function CodeBlock({ text, name }: { text: string; name: string }) {
  const { isCopied, copy } = useCopy();
  return (
    <div className={styles.code}>
      <Button className={styles.codeCopy} size="compact-xs" variant="default" onClick={copy(text)}>
        {isCopied ? 'Copied' : `Copy`}
      </Button>
      <pre tabIndex={0} role="region" aria-label={name}>
        {text}
      </pre>
    </div>
  );
}
