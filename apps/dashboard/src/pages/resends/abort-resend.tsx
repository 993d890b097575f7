import { Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import type { Schemas } from '../../api/client.ts';
import { abortResend } from '../../api/resends.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { useRights } from '../../session/session-context.ts';

/** Ends a running resend, after a question. */
export function AbortResend({ resend }: { resend: Schemas['Resend'] }) {
  const client = useQueryClient();
  const { canResend, canControl } = useRights();
  const { id, kind, status, abortAskedAt } = resend;
  if (status !== 'running') return null;
  if (abortAskedAt !== null) {
    return <Text size="sm">It ends when the deliveries under way are settled, within 20 s.</Text>;
  }
  if (!canResend && !(kind === 'replay' && canControl)) return null;
  return (
    <Confirm
      action="Abort resend"
      consequence="Nothing further is sent. What was sent stays sent and is counted; the other deliveries keep their status."
      perform={() => abortResend(id)}
      onDone={() => {
        void client.invalidateQueries({ queryKey: ['resend', id] });
        void client.invalidateQueries({ queryKey: ['resends'] });
      }}
    />
  );
}
