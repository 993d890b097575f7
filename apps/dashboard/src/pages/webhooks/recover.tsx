import { Button, Group, Radio, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, dataOf, type Schemas } from '../../api/client.ts';
import { failedSinceQuery, failedText, firstFailureQuery } from '../../api/resends.ts';
import { valueTo } from '../../parts/form-fields.ts';
import { Section } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { absoluteTime } from '../../parts/time-words.ts';
import { ResendProgress } from './resend-progress.tsx';

const PRESETS = [
  { id: 'hour', name: 'The last hour', ms: 3_600_000 },
  { id: 'day', name: 'The last day', ms: 86_400_000 },
  { id: 'week', name: 'The last 7 days', ms: 604_800_000 },
] as const;

export type Preset = (typeof PRESETS)[number]['id'] | 'failing' | 'custom';

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

export function sinceOf(
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

export function Presets({
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
