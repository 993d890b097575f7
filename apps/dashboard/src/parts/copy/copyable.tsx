import { Tooltip, UnstyledButton } from '@mantine/core';
import { CheckIcon, CopyIcon } from '../icons.tsx';
import { useCopy } from './use-copy.ts';
import styles from '../parts.module.css';

/** Ids are longer. */
const SHORT_CHARS = 24;

/** An id, or any short text, that one click copies. */
export function Copyable({ text, name = 'id' }: { text: string; name?: string }) {
  const { isCopied, copy } = useCopy();
  return (
    <Tooltip label={isCopied ? 'Copied' : `Copy this ${name}`}>
      <UnstyledButton
        className={styles.copyable}
        data-long={text.length > SHORT_CHARS || undefined}
        onClick={copy(text)}
        aria-label={`Copy ${name} ${text}`}
      >
        <span className={styles.copyableText}>{text}</span>
        {isCopied ? <CheckIcon /> : <CopyIcon />}
      </UnstyledButton>
    </Tooltip>
  );
}
