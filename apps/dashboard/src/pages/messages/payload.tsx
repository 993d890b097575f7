import { Group, SegmentedControl, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/client.ts';
import { deliveriesQuery, erasePayload, messageQuery } from '../../api/messages.ts';
import { curlOf } from '../../api/recorded-calls.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Section } from '../../parts/page.tsx';
import { CodeBlock } from '../../parts/values.tsx';
import { useRights, useSession } from '../../session/session-context.ts';
import { messageBody } from './message-body.ts';
import { pretty } from './pretty-json.ts';

const SHAPES = [
  { value: 'pretty', label: 'Pretty' },
  { value: 'raw', label: 'Raw' },
  { value: 'curl', label: 'curl' },
];

/** The payload, to read, byte for byte as it was sent, or as the request that sends it again. */
export function Payload({ message }: { message: Schemas['Message'] }) {
  const { kind } = useSession();
  const [shape, setShape] = useState('pretty');
  const { payload } = message;
  if (payload === null) {
    return (
      <Section title="Payload">
        <Text size="sm">
          It was erased: by a request, or after every delivery was delivered, as its app asks.
        </Text>
      </Section>
    );
  }
  const shapes = kind === 'portal' ? SHAPES.filter(({ value }) => value !== 'curl') : SHAPES;
  const control = (
    <Group gap="sm">
      <SegmentedControl
        size="xs"
        data={shapes}
        value={shape}
        onChange={setShape}
        aria-label="Show as"
      />
      <Erase messageId={message.id} />
    </Group>
  );
  return (
    <Section title="Payload" actions={control}>
      <CodeBlock name="Payload" text={textOf(shape, message, payload)} />
    </Section>
  );
}

function Erase({ messageId }: { messageId: string }) {
  const client = useQueryClient();
  const { canErase } = useRights();
  if (!canErase) return null;
  const reload = (): void => {
    void client.invalidateQueries(messageQuery(messageId));
    void client.invalidateQueries(deliveriesQuery(messageId));
  };
  return (
    <Confirm
      action="Erase payload"
      consequence="The payload and the responses of all its deliveries are erased for good, and deliveries that are pending are cancelled. Kafka keeps the payload of a small message for up to 3 days and 6 hours."
      perform={() => erasePayload(messageId)}
      onDone={reload}
    />
  );
}

function textOf(shape: string, message: Schemas['Message'], payload: string): string {
  if (shape === 'raw') return payload;
  if (shape === 'pretty') return pretty(payload);
  const { appId, deliveries } = message;
  const to = appId === null ? { webhookId: deliveries[0]?.webhookId } : { appId };
  const body = messageBody({ ...message, to }, payload);
  return curlOf({ method: 'POST', path: '/api/v1/webhook-messages' }, body);
}
