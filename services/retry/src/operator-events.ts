import {
  decodeOperatorEvent,
  type OperatorEvent,
  operatorPayloadOf,
  slackPayloadOf,
  teamsPayloadOf,
} from '@posthorn/domain/operator-events.ts';
import { readRecord, UnreadableRecordError } from '@posthorn/domain/records/record-value.ts';
import { standardKey, standardSignature } from '@posthorn/domain/request/signature.ts';
import { StoppedError } from '@posthorn/platform/async/keep-trying.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { DeadLetters } from '@posthorn/platform/records/dead-letters.ts';
import { messageOf, StartupError } from '@posthorn/platform/service/errors.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { RetryConfig } from './config.ts';
import { openResponse } from './open-response.ts';

type Post = (url: string, headers: Record<string, string>, body: Buffer) => Promise<number>;

interface OperatorRequest {
  headers: Record<string, string>;
  payload: Buffer;
}

/** Returns the request for an event at a time in milliseconds since 1970. */
type MakeRequest = (event: OperatorEvent, nowMs: number) => OperatorRequest;

type FormatSettings = Pick<
  RetryConfig,
  'OPERATOR_WEBHOOK_FORMAT' | 'OPERATOR_WEBHOOK_SECRET' | 'PUBLIC_URL'
>;

/**
 * Returns how the operator's webhook is called. Chats check no signature: whoever knows their URL may write to them.
 * Throws StartupError when the format needs a secret that is not set.
 */
export function createOperatorRequest(config: FormatSettings): MakeRequest {
  const publicUrl = config.PUBLIC_URL ?? null;
  const headers = { 'content-type': 'application/json' };
  switch (config.OPERATOR_WEBHOOK_FORMAT) {
    case 'standard':
      return signedRequest(config.OPERATOR_WEBHOOK_SECRET);
    case 'slack':
      return (event) => ({ headers, payload: slackPayloadOf(event, publicUrl) });
    case 'teams':
      return (event) => ({ headers, payload: teamsPayloadOf(event, publicUrl) });
  }
}

function signedRequest(secret: string | undefined): MakeRequest {
  if (secret === undefined) {
    throw new StartupError(
      'OPERATOR_WEBHOOK_SECRET is required with OPERATOR_WEBHOOK_URL, unless OPERATOR_WEBHOOK_FORMAT is slack or teams.',
    );
  }
  const key = standardKey(secret);
  return (event, nowMs) => {
    const payload = operatorPayloadOf(event);
    const timestampSeconds = Math.floor(nowMs / 1_000);
    const signature = standardSignature(key, { messageId: event.id, timestampSeconds, payload });
    const headers = {
      'content-type': 'application/json',
      'webhook-id': event.id,
      'webhook-timestamp': String(timestampSeconds),
      'webhook-signature': signature,
    };
    return { headers, payload };
  };
}

interface SendOperatorEventDeps {
  /** That of a chat is a secret, and is not logged. */
  url: string;
  makeRequest: MakeRequest;
  /** Resolves with the status of the response; rejects when there is none. */
  post?: Post;
  /** Waits so many milliseconds, or until the signal is aborted. Never rejects. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Aborted when the process stops. */
  stopping: AbortSignal;
  deadLetters: Pick<DeadLetters, 'put'>;
  onResult: (result: 'delivered' | 'failed') => void;
  logger: Pick<Logger, 'warn'>;
  nowMs: () => number;
}

/** After these waits an event is given up; it stays in its topic for seven days. */
const DELAYS_MS = [1_000, 10_000, 60_000, 300_000];
const TIMEOUT_MS = 10_000;

/** Sends events to the operator's URL, each at most five times. */
export function createSendOperatorEvent({
  url,
  makeRequest,
  post = postEvent,
  pause,
  stopping,
  deadLetters,
  onResult,
  logger,
  nowMs,
}: SendOperatorEventDeps): (record: LogRecord) => Promise<void> {
  return async (record) => {
    const event = readRecord(() => decodeOperatorEvent(record.value));
    if (event instanceof UnreadableRecordError) {
      await deadLetters.put(record, 'unreadable_record', event.message);
      return;
    }
    const { id, type } = event;
    for (const delayMs of [0, ...DELAYS_MS]) {
      if (delayMs > 0) await pause(delayMs, stopping);
      // The record stays uncommitted, and another process sends its event.
      if (stopping.aborted) throw new StoppedError('stopping');
      const { headers, payload } = makeRequest(event, nowMs());
      const problem = await problemOf(post(url, headers, payload));
      if (problem === null) {
        onResult('delivered');
        return;
      }
      logger.warn({ eventId: id, type, problem }, 'operator event not delivered');
    }
    onResult('failed');
  };
}

async function postEvent(...[url, headers, body]: Parameters<Post>): Promise<number> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await openResponse(url, { method: 'POST', headers, body, signal });
  response.destroy();
  return response.statusCode ?? 0;
}

/** Null when the response is a success. */
async function problemOf(posted: Promise<number>): Promise<string | null> {
  try {
    const status = await posted;
    return status >= 200 && status <= 299 ? null : `status ${status}`;
  } catch (error) {
    return messageOf(error);
  }
}
