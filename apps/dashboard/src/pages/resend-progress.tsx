import { Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect } from 'react';
import type { Schemas } from '../api/client.ts';
import { abortResend, resendQuery } from '../api/resends.ts';
import { outcomeWords } from '../api/words.ts';
import { Confirm } from '../parts/dialog.tsx';
import { CountsBar } from '../parts/figures.tsx';
import { QueryView } from '../parts/states.tsx';
import { Status, type Tone } from '../parts/status.tsx';
import { useRights, useSession } from '../session/session-context.ts';
import { AppLink, useApps, useWebhooks, WebhookLink } from './names.tsx';

const WORDS: Record<Schemas['Resend']['status'], string> = {
  running: 'is running. You may leave this page.',
  done: 'is done.',
  aborted: 'was aborted.',
};

/** How far a resend is. It goes on when this page is closed. */
export function ResendProgress({ resendId }: { resendId: string }) {
  const client = useQueryClient();
  const query = useQuery(resendQuery(resendId));
  const isOver = query.data !== undefined && query.data.status !== 'running';
  useEffect(() => {
    // What it has sent has not failed any more.
    if (isOver) void client.invalidateQueries({ queryKey: ['failed-since'] });
  }, [client, isOver]);
  return (
    <QueryView query={query} what="the progress of the resend">
      {(resend) => (
        <div role="status">
          <Text size="sm" mb="xs">
            The {resend.kind} {WORDS[resend.status]}{' '}
            <Link to="/resends/$resendId" params={{ resendId }}>
              Its page
            </Link>
          </Text>
          <ResendCounts resend={resend} />
          <AbortResend resend={resend} />
        </div>
      )}
    </QueryView>
  );
}

type Resend = Schemas['Resend'];

const TONES: Record<Resend['status'], Tone> = { running: 'waiting', done: 'good', aborted: 'off' };

export function ResendStatus({ resend: { status, abortAskedAt } }: { resend: Resend }) {
  const isAborting = status === 'running' && abortAskedAt !== null;
  return <Status tone={TONES[status]}>{isAborting ? 'aborting' : status}</Status>;
}

export function ResendCounts({ resend }: { resend: Resend }) {
  const { kind, status, total, succeeded, failed, done, skipped } = resend;
  const rest = Math.max(0, total - done - skipped);
  const left = { name: status === 'aborted' ? 'not sent' : 'to do', count: rest } as const;
  return (
    <CountsBar
      parts={[
        ...(kind === 'replay'
          ? ([
              { name: 'sent', count: done, tone: 'good' },
              { name: 'skipped', count: skipped, tone: 'off' },
            ] as const)
          : ([
              { name: 'succeeded', count: succeeded, tone: 'good' },
              { name: 'failed', count: failed, tone: 'bad' },
            ] as const)),
        { ...left, tone: status === 'aborted' ? 'off' : 'waiting' },
      ]}
    />
  );
}

type Owner = Pick<Resend, 'appId' | 'webhookId'>;

/** The webhooks and apps of resends or cancellations. */
export function useOwners(resends: readonly Owner[]) {
  return {
    webhooks: useWebhooks(resends.map(({ webhookId }) => webhookId)),
    apps: useApps(resends.map(({ appId, webhookId }) => (webhookId === null ? appId : null))),
  };
}

interface ResendOwnerProps extends ReturnType<typeof useOwners> {
  resend: Resend;
}

/** What a resend is of, with the link to it. */
export function ResendOwner({ resend, webhooks, apps }: ResendOwnerProps) {
  const { kind, outcome, filter } = resend;
  const only =
    outcome === null
      ? (filter?.eventType ?? filter?.reason?.replaceAll('_', ' ') ?? null)
      : outcomeWords(outcome);
  return (
    <>
      <WhoseDeliveries owner={resend} only={only} webhooks={webhooks} apps={apps} />
      {kind === 'replay' && ' messages that it has missed'}
    </>
  );
}

interface WhoseProps extends ReturnType<typeof useOwners> {
  owner: Owner;
  /** What else selects the deliveries; null for nothing. */
  only: string | null;
}

/** The webhook, app or company whose deliveries are sent again or cancelled, with the link to it. */
export function WhoseDeliveries({ owner, only, webhooks, apps }: WhoseProps) {
  const { appId, webhookId } = owner;
  const { kind } = useSession();
  if (webhookId !== null) {
    return (
      <>
        <WebhookLink webhookId={webhookId} webhook={webhooks.get(webhookId)} />
        {only !== null && ` only “${only}”`}
      </>
    );
  }
  const suffix = only === null ? '' : `, only “${only}”`;
  if (kind === 'portal') return `all webhooks of the app${suffix}`;
  if (appId === null) return `all webhooks${suffix}`;
  return (
    <>
      all webhooks of <AppLink appId={appId} app={apps.get(appId)} />
      {suffix}
    </>
  );
}

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
      action={`Abort ${kind}`}
      size="xs"
      consequence="Nothing further is sent. What was sent stays sent and is counted; the other deliveries keep their status."
      perform={() => abortResend(id)}
      onDone={() => {
        void client.invalidateQueries({ queryKey: ['resend', id] });
        void client.invalidateQueries({ queryKey: ['resends'] });
      }}
    />
  );
}
