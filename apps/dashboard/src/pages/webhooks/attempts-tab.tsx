import { NativeSelect } from '@mantine/core';
import { useState } from 'react';
import type { Schemas } from '../../api/client.ts';
import { MessageList } from '../messages/message-list.tsx';
import { valueTo } from '../../parts/value-to.ts';

const STATUSES = [
  { value: '', label: 'All' },
  { value: 'pending', label: 'Pending: another attempt follows' },
  { value: 'delivered', label: 'Delivered' },
  { value: 'exhausted', label: 'Exhausted: no attempt follows' },
  { value: 'cancelled', label: 'Cancelled' },
];

/** The messages to one webhook; each leads to its attempts. */
export function AttemptsTab({ webhookId }: { webhookId: string }) {
  const [status, setStatus] = useState('');
  const filter = {
    webhookId,
    status: (status || undefined) as Schemas['DeliveryStatus'] | undefined,
  };
  return (
    <>
      <NativeSelect
        label="Status"
        mb="md"
        maw="20rem"
        data={STATUSES}
        value={status}
        onChange={valueTo(setStatus)}
      />
      <MessageList filter={filter} />
    </>
  );
}
