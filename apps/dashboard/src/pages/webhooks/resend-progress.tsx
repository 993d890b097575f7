import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.ts';
import { resendQuery } from '../../api/resends.ts';
import { QueryView } from '../../parts/states.tsx';
import { AbortResend } from '../resends/abort-resend.tsx';
import { ResendCounts } from '../resends/resend-state.tsx';

const WORDS: Record<Schemas['Resend']['status'], string> = {
  running: 'The resend is running. You may leave this page.',
  done: 'The resend is done.',
  aborted: 'The resend was aborted.',
};

/** How far a resend is. It goes on when this page is closed. */
export function ResendProgress({ resendId }: { resendId: string }) {
  const query = useQuery(resendQuery(resendId));
  return (
    <QueryView query={query} what="the progress of the resend">
      {(resend) => (
        <div role="status">
          <Text size="sm" mb="xs">
            {WORDS[resend.status]}{' '}
            <Link to="/resends/$resendId" params={{ resendId }}>
              Its page
            </Link>
          </Text>
          <ResendCounts resend={resend} />
          <AbortResend resend={resend} />
        </div>
      )}
    </QueryView>
  );
}
