import { Text, Title } from '@mantine/core';
import { useEffect } from 'react';
import { toFailure } from '../api/failure.ts';
import styles from './session.module.css';

/** What ends a visit, and not what keeps a link from opening. */
const ENDS = ['unauthorized', 'session_replaced'];

/** Why a portal is not shown: its link was used, has expired or is not whole, or the visit has ended. */
export function PortalClosed({ error }: { error: Error | null }) {
  useEffect(() => {
    document.title = 'Webhooks';
  }, []);
  const failure = error === null ? null : toFailure(error);
  const isEnd = failure === null || ENDS.includes(failure.code);
  return (
    <main className={styles.entrance}>
      <div className={styles.card} role="alert">
        <Title order={1} size="h2">
          {isEnd ? 'Your visit has ended' : 'This link does not open the portal'}
        </Title>
        <Text>
          {failure !== null && (failure.code === 'session_replaced' || !isEnd)
            ? failure.message
            : 'A visit lasts as long as its link says, or until it is ended.'}
        </Text>
        <Text>
          Each link opens the portal once. Go back to the site that gave you the link and open the
          webhooks there again: it makes a new one.
        </Text>
        {failure !== null && (
          <Text size="sm">
            Code <code>{failure.code}</code>
            {failure.requestId !== null && (
              <>
                , request <code>{failure.requestId}</code>
              </>
            )}
          </Text>
        )}
      </div>
    </main>
  );
}
