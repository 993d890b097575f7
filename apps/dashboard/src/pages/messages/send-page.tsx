import { Button, Group, Textarea, TextInput } from '@mantine/core';
import { MESSAGE_RULES } from '@posthorn/client/rules';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { GATEWAY_URL } from '../../api/addresses.ts';
import { type Schemas, sessionHeaders } from '../../api/client.ts';
import { failureOf, toFailure } from '../../api/failure.ts';
import { curlOf } from '../../api/recorded-calls.ts';
import { AppSelect } from '../../parts/filters.tsx';
import { errorIn, isAtOneOf, linesOf, valueTo } from '../../parts/form-fields.ts';
import { Page } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { CodeBlock } from '../../parts/values.tsx';
import { useSession } from '../../session/session-context.ts';
import { messageBody, type MessageFields } from './message-rules.ts';
import styles from './messages.module.css';

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

/** What somebody has typed. */
interface Draft {
  eventType: string;
  tags: string;
  externalId: string;
  orderingKey: string;
  payload: string;
}

const NEW_DRAFT: Draft = {
  eventType: '',
  tags: '',
  externalId: '',
  orderingKey: '',
  payload: EXAMPLE,
};

function SendForm() {
  const { appId: asked = '', webhookId } = route.useSearch();
  const { key } = useSession();
  const [appId, setAppId] = useState(asked || (key.appId ?? ''));
  const [draft, setDraft] = useState(NEW_DRAFT);
  const send = useSend();
  const isAddressed = webhookId !== undefined || appId !== '';
  const body = bodyOf(webhookId === undefined ? { appId } : { webhookId }, draft);
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
      <DraftFields
        draft={draft}
        set={(typed) => {
          setDraft({ ...draft, ...typed });
        }}
        error={send.error}
      />
      <Group>
        <Button
          type="submit"
          loading={send.isPending}
          disabled={!isAddressed || !isObject(draft.payload)}
        >
          Send
        </Button>
      </Group>
      <CodeBlock name="Send with curl" text={curlOf({ method: 'POST', path: PATH }, body)} />
    </form>
  );
}

function bodyOf(to: MessageFields['to'], draft: Draft): string {
  const fields = {
    to,
    eventType: draft.eventType.trim() || null,
    tags: linesOf(draft.tags),
    externalId: draft.externalId.trim() || null,
    orderingKey: draft.orderingKey.trim() || null,
  };
  return messageBody(fields, draft.payload);
}

interface DraftFieldsProps {
  draft: Draft;
  set: (typed: Partial<Draft>) => void;
  error: Error | null;
}

function DraftFields({ draft, set, error }: DraftFieldsProps) {
  const problems = error === null ? [] : toFailure(error).problems;
  const field = (name: keyof Draft) => ({
    value: draft[name],
    error: errorIn(problems, name),
    onChange: valueTo((typed) => {
      set({ [name]: typed });
    }),
  });
  return (
    <>
      <TextInput
        label="Event type"
        description="Webhooks that select event types get only those"
        placeholder="order.paid"
        {...field('eventType')}
      />
      <Textarea
        label="Tags, one on each line"
        description={`To find the message by, at most ${MESSAGE_RULES.tags.maxEntries}. Deliveries do not have them`}
        rows={2}
        {...field('tags')}
      />
      <TextInput
        label="External id"
        description="Your own id to find the message by, such as that of an order"
        {...field('externalId')}
      />
      <TextInput
        label="Ordering key"
        description="Webhooks with an order get messages with the same key one after the other"
        {...field('orderingKey')}
      />
      <Textarea
        label="Payload"
        description="A JSON object, delivered byte for byte"
        rows={8}
        classNames={{ input: styles.payload ?? '' }}
        {...field('payload')}
        error={isObject(draft.payload) ? undefined : 'This is not a JSON object'}
      />
    </>
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
const hasField = isAtOneOf(['eventType', 'tags', 'externalId', 'orderingKey']);

function SendFailed({ error }: { error: Error | null }) {
  if (error === null) return null;
  return <Failed error={error} what="send the message" isAtField={hasField} />;
}
