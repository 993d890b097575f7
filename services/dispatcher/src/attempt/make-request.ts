import type { Attempt } from '@posthorn/domain/delivery/delivery.ts';
import { disabledReasonOf } from '@posthorn/domain/delivery/ending.ts';
import { retryAfterMsOf } from '@posthorn/domain/delivery/schedule.ts';
import { PAYLOAD_ERASED } from '@posthorn/domain/delivery/when-cancelled.ts';
import { EVENT_TYPE_HEADER } from '@posthorn/domain/records/record-headers.ts';
import { traceparentOf } from '@posthorn/domain/request/traceparent.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import type { OAuth2Client } from '@posthorn/domain/webhook.ts';
import type { HeldLease } from './attempt-leases.ts';
import type { AttemptReport, Slot } from '../isolation/gate.ts';
import type { AccessTokens } from '../sending/access-tokens.ts';
import type { SendWebhook } from '../sending/send-webhook.ts';
import {
  type DisableByEndpoint,
  findTarget,
  type LoadedWebhook,
  type TargetDeps,
} from '../webhooks.ts';
import type { Disposition } from './dispositions.ts';
import {
  abortedAttempt,
  type Made,
  type SettledAttemptDeps,
  toSettled,
} from './settled-attempt.ts';
import { type DueRecord, findEnd, type WhenToSendDeps } from './when-to-send.ts';

export interface RequestDeps extends TargetDeps, WhenToSendDeps, SettledAttemptDeps {
  disableWebhook: DisableByEndpoint;
  tokens: Pick<AccessTokens, 'get'>;
  send: SendWebhook;
  /** How long an attempt is deferred when our proxy failed. */
  proxyRetryMs: number;
}

/** The rights of an attempt whose request is made. */
interface Rights {
  /** The webhook as it was before the attempt waited for its slot. */
  found: LoadedWebhook;
  slot: Slot;
  lease: Pick<HeldLease, 'begin'>;
}

/**
 * While the attempt waited, its lease may have ended and another process have made it, its webhook was changed, its
 * message was erased or has expired, or its endpoint asked for a pause.
 */
export interface StartOver {
  kind: 'start_over';
}

const START_OVER: StartOver = { kind: 'start_over' };

type Requested =
  Made | Extract<Disposition, { kind: 'message_missing' | 'cancel' | 'defer' }> | StartOver;

/** Uses the slot for one request. The slot is free again when the promise resolves. */
export async function makeRequest(
  deps: RequestDeps,
  dueRecord: DueRecord,
  rights: Rights,
): Promise<Disposition | StartOver> {
  let requested: Requested | null = null;
  try {
    requested = await request(deps, dueRecord, rights);
    if (requested.kind === 'attempted') await disableIfTold(deps, dueRecord, requested);
  } finally {
    const made = requested?.kind === 'attempted' ? requested.attempt : null;
    await rights.slot.end(made && reportOf(made, deps.nowMs()));
  }
  return requested.kind === 'attempted' ? toSettled(deps, dueRecord, requested) : requested;
}

/** The slot waits for it, so that no further request takes its place. */
async function disableIfTold(
  { disableWebhook }: RequestDeps,
  { due }: DueRecord,
  { attempt, to: { webhook } }: Made,
): Promise<void> {
  const reason = disabledReasonOf(webhook, attempt);
  if (reason) await disableWebhook({ due, attempt, webhook, reason });
}

/** Reports the attempt to its endpoint. */
function reportOf({ outcome, statusCode, responseHeaders }: Attempt, nowMs: number): AttemptReport {
  return { outcome, statusCode, retryAfterMs: retryAfterMsOf(responseHeaders, nowMs) };
}

async function request(
  deps: RequestDeps,
  dueRecord: DueRecord,
  rights: Rights,
): Promise<Requested> {
  const { record, due } = dueRecord;
  const { found, slot } = rights;
  const payload = due.payload ?? (await loadPayload(dueRecord, slot));
  if (!payload) return { kind: 'message_missing' };
  if (payload === 'erased') return { kind: 'cancel', reason: PAYLOAD_ERASED };
  const hasWaited = slot.hasWaited || slot.payload !== null;
  const to = await begin(deps, dueRecord, rights, hasWaited ? null : found);
  if (!to) return START_OVER;
  const ready = { record, due, payload, to };
  const { authMethod } = to.webhook;
  return authMethod.method === 'oauth2'
    ? sendWithToken(deps, ready, rights, authMethod)
    : send(deps, ready);
}

/** Loads it into the memory that its slot came with, and completes the headers of a record that was made without its message. */
async function loadPayload(
  { record, due }: DueRecord,
  { payload }: Slot,
): Promise<Buffer | 'erased' | null> {
  // As a missing message, it would end its delivery.
  if (!payload)
    throw new ImpossibleError('an attempt without its payload has no memory to load it');
  const message = await payload.load(due.messageId);
  if (message === null || message === 'erased') return message;
  record.headers = { ...message.headers, ...record.headers };
  return message.bytes;
}

/**
 * Begins the request at its lease and its endpoint. Resolves with the webhook as it is now; null when the attempt has to
 * start over. The webhook is looked up again unless it is given: an attempt that has waited must not go to a webhook
 * that was disabled, deleted, changed or put on hold meanwhile.
 */
async function begin(
  deps: RequestDeps,
  dueRecord: DueRecord,
  { slot, lease }: Rights,
  known: LoadedWebhook | null,
): Promise<LoadedWebhook | null> {
  const target = known
    ? { kind: 'send' as const, to: known }
    : await findTarget(deps, dueRecord.due);
  if (findEnd(deps, dueRecord)) return null;
  const mayBegin = lease.begin() && target.kind === 'send' && slot.begin();
  return mayBegin ? target.to : null;
}

interface Ready extends DueRecord {
  payload: Buffer;
  to: LoadedWebhook;
}

async function send(deps: RequestDeps, ready: Ready, accessToken?: string): Promise<Requested> {
  const { record, due, payload, to } = ready;
  const traceparent = traceparentOf(record.headers.traceparent);
  const eventType = record.headers[EVENT_TYPE_HEADER];
  const attempt = await deps.send(due, payload, to, { traceparent, eventType, accessToken });
  if (!attempt) return proxyFailed(deps);
  return { kind: 'attempted', attempt, to, payloadBytes: payload.length };
}

/** Nothing is reported of the endpoint, and no attempt of the schedule is used up. */
function proxyFailed({ nowMs, proxyRetryMs }: RequestDeps): Requested {
  return { kind: 'defer', because: 'proxy', reservedAtMs: nowMs() + proxyRetryMs };
}

/**
 * The attempt keeps its slot while it waits for its token, as with an egress proxy that hangs: a slow token server
 * slows its own webhooks down, and nothing else is learned from it.
 */
async function sendWithToken(
  deps: RequestDeps,
  ready: Ready,
  rights: Rights,
  client: OAuth2Client,
): Promise<Requested> {
  const { due, to } = ready;
  const startedAtMs = deps.nowMs();
  const shared = await deps.tokens.get(to.webhook.companyId, client);
  if (!shared) return proxyFailed(deps);
  const { answer, refuse } = shared;
  switch (answer.kind) {
    case 'later':
      return { kind: 'defer', because: 'host', reservedAtMs: answer.reservedAtMs };
    case 'failed': {
      const durationMs = Math.max(0, deps.nowMs() - startedAtMs);
      const aborted = { ...abortedAttempt(due, startedAtMs), durationMs };
      const attempt = {
        ...aborted,
        outcome: 'token_failed',
        failureReason: answer.reason,
      } as const;
      return { kind: 'attempted', attempt, to, payloadBytes: 0 };
    }
    case 'token': {
      const now = await begin(deps, ready, rights, null);
      // The token may be of other credentials, or for another endpoint.
      if (now?.webhook.updatedAtMs !== to.webhook.updatedAtMs) return START_OVER;
      const requested = await send(deps, { ...ready, to: now }, answer.value);
      // The endpoint does not accept the token any more; the next attempt gets another one.
      if (requested.kind === 'attempted' && requested.attempt.statusCode === 401) refuse();
      return requested;
    }
  }
}
