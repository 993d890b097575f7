import { Button, Group, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/client.ts';
import { missedSinceQuery, startReplay } from '../../api/resends.ts';
import { valueTo } from '../../parts/form-fields.ts';
import { Section } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { countText } from '../../parts/time-words.ts';
import { type Preset, Presets, sinceOf } from './recover.tsx';
import { ResendProgress } from './resend-progress.tsx';

/** The gateway counts no further. */
const MOST_COUNTED = 100_000;

/** Sends the webhook messages of its app that it was no target of, after a count of them. */
export function Replay({ webhook: { id } }: { webhook: Schemas['WebhookWithAuth'] }) {
  const [openedAtMs] = useState(() => Date.now());
  const [preset, setPreset] = useState<Preset>('day');
  const [custom, setCustom] = useState('');
  const since = sinceOf(preset, openedAtMs, custom, null);
  const missed = useQuery(missedSinceQuery(id, since));
  const start = useMutation({ mutationFn: (from: string) => startReplay(id, from) });
  return (
    <Section title="Replay">
      <Presets
        label="Send messages that it has missed since"
        preset={preset}
        setPreset={setPreset}
        openedAtMs={openedAtMs}
        failingSince={null}
      />
      {preset === 'custom' && (
        <TextInput
          type="datetime-local"
          label="Since (your time)"
          value={custom}
          onChange={valueTo(setCustom)}
        />
      )}
      {missed.error !== null && <Failed error={missed.error} what="count what it has missed" />}
      <Text size="sm">{since === null ? 'Choose a time.' : missedText(missed.data)}</Text>
      <Group>
        <Button
          variant="default"
          disabled={since === null}
          loading={missed.isFetching}
          onClick={() => void missed.refetch()}
        >
          Count missed messages
        </Button>
        <Button
          disabled={since === null || missed.data === undefined || missed.data === 0}
          loading={start.isPending}
          onClick={() => {
            if (since !== null) start.mutate(since);
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

function missedText(count: number | undefined): string {
  if (count === undefined) return 'Count what it has missed before it is sent.';
  if (count === 0) return 'It has every message of this time that it receives.';
  const messages = count === 1 ? 'One message' : `${countText(count)} messages`;
  const counted = count >= MOST_COUNTED ? `${messages} or more` : messages;
  return `${counted} of its app were sent without it, and have a type that it receives. They are sent to it now, oldest first, and to no other webhook.`;
}
