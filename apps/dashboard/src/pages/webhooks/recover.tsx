import { Button, Group, Radio, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { api, dataOf, type Schemas } from '../../api/client.ts';
import { cancelPending } from '../../api/messages.ts';
import {
  failedSinceQuery,
  failedText,
  firstFailureQuery,
  missedQuery,
  type MissedSpan,
  startReplay,
} from '../../api/resends.ts';
import { healthQuery } from '../../api/webhooks.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { valueTo } from '../../parts/form-fields.ts';
import { Section } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { absoluteTime, countText } from '../../parts/time-words.ts';
import { ResendProgress } from '../resend-progress.tsx';

const PRESETS = [
  { id: 'hour', name: 'The last hour', ms: 3_600_000 },
  { id: 'day', name: 'The last day', ms: 86_400_000 },
  { id: 'week', name: 'The last 7 days', ms: 604_800_000 },
] as const;

type Preset = (typeof PRESETS)[number]['id'] | 'failing' | 'custom';

/** Sends again what failed since a time, with how many that is before it begins. */
export function Recover({ webhook: { id, disabled } }: { webhook: Schemas['WebhookWithAuth'] }) {
  const [openedAtMs] = useState(() => Date.now());
  const [preset, setPreset] = useState<Preset>('hour');
  const [custom, setCustom] = useState('');
  const failing = useQuery(firstFailureQuery(id));
  const since = sinceOf(preset, openedAtMs, custom, failing.data ?? null);
  const failed = useQuery(failedSinceQuery(id, since));
  const start = useMutation({
    mutationFn: (from: string) =>
      dataOf(
        api.POST('/webhooks/{webhookId}/resend-failed', {
          params: { path: { webhookId: id } },
          body: { since: from },
        }),
      ),
  });
  if (disabled) return null;
  return (
    <Section title="Recover">
      <Presets
        preset={preset}
        setPreset={setPreset}
        openedAtMs={openedAtMs}
        failingSince={failing.data ?? null}
      />
      {preset === 'custom' && (
        <TextInput
          type="datetime-local"
          label="Since (your time)"
          value={custom}
          onChange={valueTo(setCustom)}
        />
      )}
      <Estimate webhookId={id} since={since} />
      <Group>
        <Button
          disabled={since === null || failed.data === 0}
          loading={start.isPending}
          onClick={() => {
            if (since !== null) start.mutate(since);
          }}
        >
          Send failed deliveries again
        </Button>
      </Group>
      {start.error !== null && <Failed error={start.error} what="start the resend" />}
      {start.data !== undefined && <ResendProgress resendId={start.data.id} />}
    </Section>
  );
}

function sinceOf(
  preset: Preset,
  nowMs: number,
  custom: string,
  failing: string | null,
): string | null {
  if (preset === 'failing') return failing;
  const known = PRESETS.find(({ id }) => id === preset);
  if (known !== undefined) return new Date(nowMs - known.ms).toISOString();
  const customMs = Date.parse(custom);
  return Number.isNaN(customMs) ? null : new Date(customMs).toISOString();
}

interface PresetsProps {
  label?: string;
  preset: Preset;
  setPreset: (preset: Preset) => void;
  openedAtMs: number;
  failingSince: string | null;
}

function Presets({
  label = 'Send again what failed since',
  preset,
  setPreset,
  openedAtMs,
  failingSince,
}: PresetsProps) {
  return (
    <Radio.Group
      label={label}
      value={preset}
      onChange={(value) => {
        setPreset(value);
      }}
    >
      <Stack gap="xs" mt="xs">
        {failingSince !== null && (
          <Radio
            value="failing"
            label="It began to fail"
            description={absoluteTime(Date.parse(failingSince))}
          />
        )}
        {PRESETS.map(({ id, name, ms }) => (
          <Radio
            key={id}
            value={id}
            label={name}
            description={`since ${absoluteTime(openedAtMs - ms)}`}
          />
        ))}
        <Radio value="custom" label="Another time" />
      </Stack>
    </Radio.Group>
  );
}

function Estimate({ webhookId, since }: { webhookId: string; since: string | null }) {
  const { data: count, error } = useQuery(failedSinceQuery(webhookId, since));
  if (since === null) return <Text size="sm">Choose a time.</Text>;
  if (error !== null) return <Failed error={error} what="count what failed" />;
  if (count === undefined) return <Text size="sm">Counting what failed …</Text>;
  if (count === 0) {
    return (
      <Text size="sm">
        No delivery of this time ended exhausted or cancelled. What is pending needs no resend: it
        goes on by itself.
      </Text>
    );
  }
  return (
    <Text size="sm">
      {failedText(count)} that ended exhausted or cancelled will get one attempt each, oldest first,
      at the pace of the endpoint. What is pending or delivered is not touched.
    </Text>
  );
}

/** The gateway counts no further. */
const MOST_COUNTED = 100_000;

/** Sends the webhook messages of its app that it was no target of, after a count of them. */
export function Replay({ webhook: { id } }: { webhook: Schemas['WebhookWithAuth'] }) {
  const client = useQueryClient();
  const [span, setSpan] = useState<MissedSpan>({ since: null, until: null, eventTypes: [] });
  const missed = useQuery(missedQuery(id, span));
  const start = useMutation({
    mutationFn: () => startReplay(id, span),
    // What is on its way is missed no more: it is counted again before another replay.
    onSuccess: () => client.resetQueries({ queryKey: ['missed', id] }),
  });
  const isChosen = span.since !== null;
  return (
    <Section title="Replay">
      <MissedFields setSpan={setSpan} />
      {missed.error !== null && <Failed error={missed.error} what="count what it has missed" />}
      <Text size="sm">{isChosen ? missedText(missed.data) : 'Choose a time.'}</Text>
      <Group>
        <Button
          variant="default"
          disabled={!isChosen}
          loading={missed.isFetching}
          onClick={() => void missed.refetch()}
        >
          Count missed messages
        </Button>
        <Button
          disabled={!isChosen || missed.data === undefined || missed.data === 0}
          loading={start.isPending}
          onClick={() => {
            start.mutate();
          }}
        >
          Send missed messages
        </Button>
      </Group>
      {start.error !== null && <Failed error={start.error} what="start the replay" />}
      {start.data !== undefined && <ResendProgress resendId={start.data.id} />}
    </Section>
  );
}

/** Which messages a replay looks at. */
function MissedFields({ setSpan }: { setSpan: (span: MissedSpan) => void }) {
  const [openedAtMs] = useState(() => Date.now());
  const [preset, setPreset] = useState<Preset>('day');
  const [custom, setCustom] = useState('');
  const [until, setUntil] = useState('');
  const [types, setTypes] = useState('');
  useEffect(() => {
    setSpan({
      since: sinceOf(preset, openedAtMs, custom, null),
      until: sinceOf('custom', openedAtMs, until, null),
      eventTypes: types.split(/[\s,]+/).filter((type) => type !== ''),
    });
  }, [setSpan, preset, openedAtMs, custom, until, types]);
  return (
    <>
      <Presets
        label="Send messages that it has missed since"
        preset={preset}
        setPreset={setPreset}
        openedAtMs={openedAtMs}
        failingSince={null}
      />
      <Group align="flex-end">
        {preset === 'custom' && (
          <TextInput
            type="datetime-local"
            label="Since (your time)"
            value={custom}
            onChange={valueTo(setCustom)}
          />
        )}
        <TextInput
          type="datetime-local"
          label="Until (your time)"
          value={until}
          onChange={valueTo(setUntil)}
        />
        <TextInput
          label="Event types"
          placeholder="all that it receives"
          value={types}
          onChange={valueTo(setTypes)}
        />
      </Group>
    </>
  );
}

function missedText(count: number | undefined): string {
  if (count === undefined) return 'Count what it has missed before it is sent.';
  if (count === 0) return 'It has every message of this time that it receives.';
  const messages = count === 1 ? 'One message' : `${countText(count)} messages`;
  const counted = count >= MOST_COUNTED ? `${messages} or more` : messages;
  return `${counted} of its app were sent without it, and have a type that it receives. They are sent to it now, oldest first, and to no other webhook.`;
}

/** The gateway counts no further. */
const MOST_PENDING = 10_000;

interface CancelPendingProps {
  webhookId: string;
  /** Whether the page lists them. */
  isListed?: boolean;
}

/** Ends what is pending at a webhook, after a question that says how many deliveries that is. */
export function CancelPending({ webhookId, isListed = false }: CancelPendingProps) {
  const client = useQueryClient();
  const { data: health } = useQuery(healthQuery(webhookId));
  const reload = (): void => {
    void client.invalidateQueries({ queryKey: ['health', webhookId] });
    void client.invalidateQueries({ queryKey: ['undelivered'] });
  };
  return (
    <Section title="Pending deliveries">
      <Text size="sm">
        {health === undefined ? 'Counting what is pending …' : pendingText(health.backlog)}{' '}
        {!isListed && (
          <Link to="/deliveries" search={{ webhookId }}>
            Show them
          </Link>
        )}
      </Text>
      <Group>
        <Confirm
          action="Cancel pending deliveries"
          consequence={`${health === undefined ? 'All pending deliveries' : pendingText(health.backlog)} No further attempt of them is made. Messages that are sent from now on are delivered, and what is cancelled can be sent again.`}
          perform={() => cancelPending(webhookId)}
          onDone={reload}
        />
      </Group>
    </Section>
  );
}

function pendingText(count: number): string {
  if (count >= MOST_PENDING) return `${countText(MOST_PENDING)} deliveries or more are pending.`;
  return count === 1 ? 'One delivery is pending.' : `${countText(count)} deliveries are pending.`;
}
