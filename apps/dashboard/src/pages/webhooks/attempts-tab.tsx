import { Group, NativeSelect } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { EventTypeInput } from '../../parts/filters.tsx';
import { valueTo } from '../../parts/form-fields.ts';
import { MessageList } from '../messages/message-list.tsx';

const route = getRouteApi('/webhooks/$webhookId');

const STATUSES = [
  { value: '', label: 'All' },
  { value: 'pending', label: 'Pending: another attempt follows' },
  { value: 'delivered', label: 'Delivered' },
  { value: 'exhausted', label: 'Exhausted: no attempt follows' },
  { value: 'cancelled', label: 'Cancelled' },
] as const;

/** The deliveries to one webhook; each leads to its attempts. */
export function AttemptsTab({ webhookId }: { webhookId: string }) {
  const { status, eventType } = route.useSearch();
  const navigate = route.useNavigate();
  const setStatus = (value: string): void => {
    const found = STATUSES.find((each) => each.value === value)?.value;
    void navigate({
      search: (before) => ({ ...before, status: found === '' ? undefined : found }),
    });
  };
  const setEventType = (value: string): void => {
    void navigate({
      search: (before) => ({ ...before, eventType: value || undefined }),
      replace: true,
    });
  };
  return (
    <>
      <Group align="end" mb="md">
        <NativeSelect
          label="Status"
          data={[...STATUSES]}
          value={status ?? ''}
          onChange={valueTo(setStatus)}
        />
        <EventTypeInput value={eventType} set={setEventType} />
      </Group>
      <MessageList
        filter={{ webhookId, deliveryStatus: status, eventType }}
        deliveriesTo={webhookId}
        key={`${status ?? ''} ${eventType ?? ''}`}
      />
    </>
  );
}
