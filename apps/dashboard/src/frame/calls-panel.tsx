import { Button, Text } from '@mantine/core';
import { useState } from 'react';
import { curlOf, useRecordedCalls } from '../api/recorded-calls.ts';
import { CodeBlock } from '../parts/copy/code-block.tsx';
import { useSession } from '../session/session-context.ts';
import styles from './frame.module.css';

/** The calls of the API that the page is made of, as commands. Nothing on a page comes from elsewhere. */
export function CallsPanel() {
  const calls = useRecordedCalls();
  const { kind } = useSession();
  const [isOpen, setOpen] = useState(false);
  if (kind === 'portal' || calls.length === 0) return null;
  return (
    <footer className={styles.calls}>
      <Button
        variant="subtle"
        size="compact-sm"
        aria-expanded={isOpen}
        onClick={() => {
          setOpen(!isOpen);
        }}
      >
        {isOpen ? 'Hide' : 'Show'} the API calls of this page ({calls.length})
      </Button>
      {isOpen && (
        <>
          <Text size="sm">
            Put an API key into <code>POSTHORN_API_KEY</code>; the page itself uses your session
            instead.
          </Text>
          {calls.map((call) => (
            <CodeBlock
              key={call.method + call.path}
              name={`${call.method} ${call.path} with curl`}
              text={curlOf(call)}
            />
          ))}
        </>
      )}
    </footer>
  );
}
