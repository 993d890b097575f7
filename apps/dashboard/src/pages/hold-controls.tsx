import { Button, Group, NumberInput, Stack, Text, TextInput } from '@mantine/core';
import { HOLD_RULES } from '@posthorn/client/rules';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, type SyntheticEvent, useState } from 'react';
import { answerOf, api, type Schemas } from '../api/client.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Facts } from '../parts/figures.tsx';
import { Section } from '../parts/page.tsx';
import { localText } from '../parts/filters.tsx';
import { Failed } from '../parts/states.tsx';
import { countText } from '../parts/time-words.ts';
import { None, When } from '../parts/values.tsx';
import { useRights } from '../session/session-context.ts';
import { WhoseId } from './names.tsx';

interface Holdable {
  kind: 'webhook' | 'app';
  id: string;
  held: Schemas['Hold'] | null;
  /** How many deliveries of a webhook wait, counted up to 100,000. */
  waiting?: number;
}

/** Holds the deliveries of a webhook or an app with a reason and an end, and resumes them. */
export function HoldControls(owner: Holdable) {
  const { canHold } = useRights();
  const { kind, held, waiting = 0 } = owner;
  if (held === null && waiting === 0 && !canHold) return null;
  return (
    <Section title="Hold">
      {held === null ? (
        <Text size="sm">
          Deliveries wait while the {kind} is on hold, and go on afterwards with the attempts that
          they have left.
        </Text>
      ) : (
        <Facts
          facts={[
            ['On hold since', <When key="since" at={held.since} />],
            ['Ends', held.until === null ? 'when it is resumed' : <When at={held.until} />],
            ['Reason', held.reason ?? <None key="reason" />],
            ['Asked for by', <WhoseId key="by" id={held.by} />],
          ]}
        />
      )}
      {waiting > 0 && <Text size="sm">{waitingText(waiting, held !== null)}</Text>}
      {canHold && (
        <Group>
          {held !== null && <EndHold {...owner} />}
          <BeginHold {...owner} />
        </Group>
      )}
    </Section>
  );
}

/** The API counts so far. */
const MOST_COUNTED = 100_000;

function waitingText(waiting: number, isHeld: boolean): string {
  const count = waiting >= MOST_COUNTED ? `${countText(waiting)} or more` : countText(waiting);
  const deliveries = waiting === 1 ? 'delivery waits' : 'deliveries wait';
  return isHeld
    ? `${count} ${deliveries}.`
    : `${count} ${deliveries} and will be released, oldest first, unless another hold lasts.`;
}

/** Begins a hold, or changes the end and the reason of the one that lives. */
function BeginHold({ kind, id, held }: Holdable) {
  const hold = async (form: FormData): Promise<unknown> => {
    const [reason, until] = [textOf(form, 'reason'), textOf(form, 'until')];
    const body = {
      reason: reason === '' ? null : reason,
      until: until === '' ? null : new Date(until).toISOString(),
    };
    return kind === 'webhook'
      ? answerOf(api.POST('/webhooks/{webhookId}/hold', { params: byWebhook(id), body }))
      : answerOf(api.POST('/apps/{appId}/hold', { params: byApp(id), body }));
  };
  return (
    <ActionForm
      action={held === null ? 'Hold deliveries' : 'Change hold'}
      what={held === null ? 'hold the deliveries' : 'change the hold'}
      act={hold}
    >
      <Text size="sm">
        Attempts that are under way are finished. Everything else waits, retries too.
      </Text>
      <TextInput
        name="reason"
        label="Reason"
        description="For people"
        maxLength={HOLD_RULES.reason.maxChars}
        defaultValue={held?.reason ?? ''}
      />
      <TextInput
        name="until"
        type="datetime-local"
        label="End (your time)"
        description="Empty: until somebody resumes the deliveries"
        defaultValue={localText(held?.until ?? '')}
      />
    </ActionForm>
  );
}

function EndHold({ kind, id }: Holdable) {
  const resume = async (form: FormData): Promise<unknown> => {
    const rate = textOf(form, 'ratePerSecond');
    const body = rate === '' ? {} : { ratePerSecond: Number(rate) };
    return kind === 'webhook'
      ? answerOf(api.POST('/webhooks/{webhookId}/resume', { params: byWebhook(id), body }))
      : answerOf(api.POST('/apps/{appId}/resume', { params: byApp(id), body }));
  };
  return (
    <ActionForm action="Resume deliveries" what="resume the deliveries" act={resume}>
      <Text size="sm">
        What waits is released oldest first, and new messages are sent in between.
      </Text>
      <NumberInput
        name="ratePerSecond"
        label="Most deliveries of a webhook per second"
        description="Empty: as fast as its endpoint takes them"
        min={HOLD_RULES.ratePerSecond.min}
        max={HOLD_RULES.ratePerSecond.max}
        hideControls
      />
    </ActionForm>
  );
}

const byWebhook = (webhookId: string) => ({ path: { webhookId } });
const byApp = (appId: string) => ({ path: { appId } });

function textOf(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === 'string' ? value.trim() : '';
}

interface ActionFormProps {
  /** On the button, and the title of the form. */
  action: string;
  /** For the message when it fails. */
  what: string;
  act: (form: FormData) => Promise<unknown>;
  children: ReactNode;
}

/** A button that opens a form; everything that is shown is read again once it was sent. */
function ActionForm({ action, what, act, children }: ActionFormProps) {
  const client = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const close = (): void => {
    setOpen(false);
  };
  const mutation = useMutation({
    mutationFn: act,
    onSuccess: async () => {
      close();
      await client.invalidateQueries();
    },
  });
  const send = (event: SyntheticEvent<HTMLFormElement>): void => {
    event.preventDefault();
    mutation.mutate(new FormData(event.currentTarget));
  };
  return (
    <>
      <Button
        variant="default"
        onClick={() => {
          mutation.reset();
          setOpen(true);
        }}
      >
        {action}
      </Button>
      <Dialog title={action} isOpen={isOpen} close={close}>
        <form onSubmit={send}>
          <Stack>
            {mutation.error !== null && <Failed error={mutation.error} what={what} />}
            {children}
            <Group justify="flex-end">
              <Button variant="default" onClick={close}>
                Keep it as it is
              </Button>
              <Button type="submit" loading={mutation.isPending}>
                {action}
              </Button>
            </Group>
          </Stack>
        </form>
      </Dialog>
    </>
  );
}
