import { Button, Group, Textarea, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { sessionHeaders, type Schemas } from '../../api/client.ts';
import { GATEWAY_URL } from '../../api/addresses.ts';
import { failureOf, toFailure, type Problem } from '../../api/failure.ts';
import { curlOf } from '../../api/recorded-calls.ts';
import { AppSelect } from '../../parts/select/app-select.tsx';
import { CodeBlock } from '../../parts/copy/code-block.tsx';
import { Page } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { useSession } from '../../session/session-context.ts';
import styles from './messages.module.css';
import { valueTo } from '../../parts/value-to.ts';

const route = getRouteApi('/messages/new');
const EXAMPLE = '{\n  "order": 17,\n  "total": "12.50"\n}';
const PATH = '/api/v1/webhook-messages';

export function SendPage() {
  return (
    <Page title="Send a message">
      <SendForm />
    </Page>
  );
}

function SendForm() {
  const { appId: asked = '', webhookId } = route.useSearch();
  const { company, key } = useSession();
  const [appId, setAppId] = useState(asked || (key.appId ?? ''));
  const [eventType, setEventType] = useState('');
  const [payload, setPayload] = useState(EXAMPLE);
  const send = useSend();
  const isAddressed = webhookId !== undefined || appId !== '';
  const body = bodyOf(
    webhookId === undefined ? { appId } : { webhookId },
    eventType.trim(),
    payload,
  );
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        send.mutate(body);
      }}
    >
      <SendFailed error={send.error} />
      {webhookId === undefined && key.appId === null && (
        <AppSelect value={appId} onChange={setAppId} />
      )}
      <TextInput
        label="Event type"
        description="Webhooks that select event types get only those"
        placeholder="order.paid"
        value={eventType}
        error={problemOf(send.error, 'eventType')}
        onChange={valueTo(setEventType)}
      />
      <PayloadField value={payload} set={setPayload} />
      <Group>
        <Button
          type="submit"
          loading={send.isPending}
          disabled={!isAddressed || !isObject(payload)}
        >
          Send
        </Button>
      </Group>
      <CodeBlock
        name="Send with curl"
        text={curlOf({ method: 'POST', path: PATH }, company.id, body)}
      />
    </form>
  );
}

function useSend() {
  const client = useQueryClient();
  const navigate = route.useNavigate();
  return useMutation({
    mutationFn: sendBody,
    onSuccess: ({ id }) => {
      void client.invalidateQueries({ queryKey: ['messages'] });
      void navigate({ to: '/messages/$messageId', params: { messageId: id } });
    },
  });
}

function PayloadField({ value, set }: { value: string; set: (payload: string) => void }) {
  return (
    <Textarea
      label="Payload"
      description="A JSON object, delivered byte for byte"
      rows={8}
      classNames={{ input: styles.payload ?? '' }}
      value={value}
      error={isObject(value) ? undefined : 'This is not a JSON object'}
      onChange={valueTo(set)}
    />
  );
}

/** The payload goes as it was typed: parsed and written again, its numbers and spaces could change. */
function bodyOf(address: object, eventType: string, payload: string): string {
  const head = JSON.stringify({ ...address, ...(eventType !== '' && { eventType }) });
  return `${head.slice(0, -1)},"payload":${payload}}`;
}

async function sendBody(body: string): Promise<Schemas['CreatedMessage']> {
  const headers = { ...sessionHeaders(), 'Content-Type': 'application/json' };
  const response = await fetch(GATEWAY_URL + PATH, { method: 'POST', headers, body });
  const answer = (await response.json().catch(() => null)) as {
    data: Schemas['CreatedMessage'];
  } | null;
  if (!response.ok || answer === null) throw failureOf(response.status, answer);
  return answer.data;
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** The other parts of a message have no field that says what is wrong. */
const hasField = ({ path }: Problem): boolean => path === 'eventType';

function SendFailed({ error }: { error: Error | null }) {
  if (error === null) return null;
  return <Failed error={error} what="send the message" isAtField={hasField} />;
}

function problemOf(error: Error | null, name: string): string | undefined {
  if (error === null) return undefined;
  return toFailure(error).problems.find(({ path }) => path === name)?.message;
}
