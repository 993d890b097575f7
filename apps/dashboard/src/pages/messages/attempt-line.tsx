import { Text } from '@mantine/core';
import { useState } from 'react';
import type { Schemas } from '../../api/client.ts';
import { outcomeWords } from '../../api/words.ts';
import { durationText } from '../../parts/time-words.ts';
import { CodeBlock, When } from '../../parts/values.tsx';
import styles from './messages.module.css';

type Attempt = Schemas['Delivery']['attempts'][number];

/** One attempt: when, how it ended in words, how long it took, and what the endpoint answered. */
export function AttemptLine({ attempt }: { attempt: Attempt }) {
  const { number, outcome, statusCode, failureReason, durationMs, createdAt, resend } = attempt;
  const [isOpen, setOpen] = useState(false);
  return (
    <li className={styles.attempt} data-good={outcome === 'success'} id={attempt.id}>
      <div className={styles.attemptHead}>
        <span>
          <strong>{resend ? `Resend, attempt ${number}` : `Attempt ${number}`}: </strong>
          the endpoint {outcomeWords(outcome, statusCode)}
        </span>
        <span className={styles.attemptFacts}>
          <When at={createdAt} /> · {durationText(durationMs)}
        </span>
        <button
          type="button"
          className={styles.more}
          aria-expanded={isOpen}
          onClick={() => {
            setOpen(!isOpen);
          }}
        >
          {isOpen ? 'Less' : 'Answer and headers'}
          <span className={styles.hidden}> of attempt {number}</span>
        </button>
      </div>
      {failureReason !== null && <Text size="sm">{failureReason}</Text>}
      {isOpen && <Exchange attempt={attempt} />}
    </li>
  );
}

function Exchange({
  attempt: { response, responseHeaders, headers, number },
}: {
  attempt: Attempt;
}) {
  return (
    <div className={styles.exchange}>
      <Text size="sm">Answer, its first 4 KiB</Text>
      {response === null || response === '' ? (
        <Text size="sm" c="dimmed">
          There was no body, or it is not stored.
        </Text>
      ) : (
        <CodeBlock name={`Answer to attempt ${number}`} text={response} />
      )}
      {responseHeaders.length > 0 && (
        <CodeBlock
          name={`Headers of the answer to attempt ${number}`}
          text={headerText(responseHeaders)}
        />
      )}
      {headers.length > 0 && (
        <>
          <Text size="sm">Headers that were sent, with credentials masked</Text>
          <CodeBlock name={`Headers of attempt ${number}`} text={headerText(headers)} />
        </>
      )}
    </div>
  );
}

function headerText(headers: Attempt['headers']): string {
  return headers.map(({ key, value }) => `${key}: ${value}`).join('\n');
}
