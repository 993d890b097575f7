import { Button, Tooltip, UnstyledButton, VisuallyHidden } from '@mantine/core';
import { Fragment, type MouseEvent, useEffect, useState, useSyncExternalStore } from 'react';
import { CheckIcon, CopyIcon } from './icons.tsx';
import { absoluteTime, hourText, relativeTime } from './time-words.ts';
import styles from './parts.module.css';

interface CutProps {
  text: string;
  /** On how many lines it is shown at most. */
  lines?: 1 | 2;
  /** `small` for what stands below a name. */
  look?: 'small' | 'id';
}

/** A text that may be long: its end is cut, and its title has all of it. */
export function Cut({ text, lines = 1, look }: CutProps) {
  return (
    <span className={styles.cut} data-lines={lines} data-look={look} title={text}>
      {lines === 1 ? text : <Breakable text={text} />}
    </span>
  );
}

/** Two lines of most columns. */
const LONG_CHARS = 60;

/** The same where nothing else shows all of it: a click, or Enter, opens a long one. */
export function Expandable({ text }: { text: string }) {
  const [isOpen, setOpen] = useState(false);
  if (text.length <= LONG_CHARS) return <Cut text={text} lines={2} />;
  return (
    <UnstyledButton
      className={styles.expandable}
      aria-expanded={isOpen}
      onClick={() => {
        setOpen(!isOpen);
      }}
    >
      {isOpen ? text : <Cut text={text} lines={2} />}
    </UnstyledButton>
  );
}

/** A new line of a URL begins behind a slash, and not within a word. */
function Breakable({ text }: { text: string }) {
  return text.split(/(?<=\/)(?!\/)/).map((part, index) => (
    // The parts of a text have no identity but their place.
    // oxlint-disable-next-line react/no-array-index-key
    <Fragment key={index}>
      {part}
      <wbr />
    </Fragment>
  ));
}

/** Stands where there is no value. */
export function None() {
  return (
    <span className={styles.muted}>
      <span aria-hidden>–</span>
      <VisuallyHidden>none</VisuallyHidden>
    </span>
  );
}

/** Ids are longer. A table may cut such a text. */
const SHORT_CHARS = 24;

/** An id, or any short text, that one click copies. */
export function Copyable({ text, name = 'id' }: { text: string; name?: string }) {
  const { isCopied, copy } = useCopy();
  const hint = text.length > SHORT_CHARS ? `Copy this ${name}: ${text}` : `Copy this ${name}`;
  return (
    <Tooltip label={isCopied ? 'Copied' : hint}>
      <UnstyledButton
        className={styles.copyable}
        onClick={copy(text)}
        aria-label={`Copy ${name} ${text}`}
      >
        <span className={styles.copyableText}>{text}</span>
        {isCopied ? <CheckIcon /> : <CopyIcon />}
      </UnstyledButton>
    </Tooltip>
  );
}

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

const SHOWN_MS = 1_500;

/** Copies text, and says for a moment that it did. */
function useCopy() {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => {
      setCopied(false);
    }, SHOWN_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [isCopied]);
  const copy =
    (text: string) =>
    (event: MouseEvent): void => {
      event.stopPropagation();
      event.preventDefault();
      void copyText(text).then(() => {
        setCopied(true);
      });
    };
  return { isCopied, copy };
}

/**
 * Copies text. Over plain http, and in some frames, browsers have no clipboard for scripts: there it is selected and
 * copied.
 */
async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copySelected(text);
  }
}

function copySelected(text: string): void {
  const field = document.createElement('textarea');
  field.value = text;
  field.readOnly = true;
  field.style.position = 'fixed';
  field.style.opacity = '0';
  document.body.append(field);
  field.select();
  // Deprecated and without a successor where `navigator.clipboard` is missing.
  // oxlint-disable-next-line typescript/no-deprecated
  document.execCommand('copy');
  field.remove();
}

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

/** The hour in which something happened, where the minute is not counted. */
export function Hour({ at }: { at: string }) {
  const beginsAtMs = Date.parse(at);
  return (
    <time dateTime={at} title={`In the hour from ${absoluteTime(beginsAtMs)}`}>
      {hourText(beginsAtMs, useNowMs())}
    </time>
  );
}

const STEP_MS = 5_000;
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let nowMs = Date.now();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    nowMs = Date.now();
    for (const each of listeners) each();
  }, STEP_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** The time, at most five seconds old. One timer serves every relative time of a page. */
export function useNowMs(): number {
  return useSyncExternalStore(subscribe, () => nowMs);
}
