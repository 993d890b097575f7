import { Tooltip, UnstyledButton } from '@mantine/core';
import { useCopy } from '../copy/use-copy.ts';
import { useNowMs } from './now.ts';
import { absoluteTime, relativeTime } from './time-words.ts';
import styles from '../parts.module.css';

/** A relative time. Hovering shows the absolute one with its zone; a click copies it in ISO 8601. */
export function When({ at }: { at: string | null }) {
  const nowMs = useNowMs();
  const { isCopied, copy } = useCopy();
  if (at === null) return <span className={styles.muted}>never</span>;
  const atMs = Date.parse(at);
  const shown = absoluteTime(atMs);
  const hint = isCopied ? `Copied ${at}` : `${shown}. Click to copy ${at}`;
  return (
    <Tooltip label={hint} events={{ hover: true, focus: true, touch: true }}>
      <UnstyledButton className={styles.when} onClick={copy(at)}>
        <time dateTime={at}>{relativeTime(atMs, nowMs)}</time>
      </UnstyledButton>
    </Tooltip>
  );
}
