import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { resendQuery } from '../../api/queries.ts';
import { Copyable } from '../../parts/copy/copyable.tsx';
import { QueryView } from '../../parts/query-view.tsx';
import { CountsBar } from '../../parts/ratio-bar.tsx';

/** How far a resend is. It goes on when this page is closed. */
export function ResendProgress({ resendId }: { resendId: string }) {
  const query = useQuery(resendQuery(resendId));
  return (
    <QueryView query={query} what="the progress of the resend">
      {({ status, total, succeeded, failed }) => (
        <div role="status">
          <Text size="sm" mb="xs">
            {status === 'done'
              ? 'The resend is done.'
              : 'The resend is running. You may leave this page.'}{' '}
            <Copyable text={resendId} />
          </Text>
          <CountsBar
            parts={[
              { name: 'succeeded', count: succeeded, tone: 'good' },
              { name: 'failed', count: failed, tone: 'bad' },
              { name: 'to do', count: Math.max(0, total - succeeded - failed), tone: 'waiting' },
            ]}
          />
        </div>
      )}
    </QueryView>
  );
}
