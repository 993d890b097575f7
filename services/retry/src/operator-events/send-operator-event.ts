import {
  decodeOperatorEvent,
  operatorPayloadOf,
} from '@posthorn/domain/operator-events/operator-event.ts';
import { readRecord, UnreadableRecordError } from '@posthorn/domain/records/records.ts';
import { standardKey, standardSignature } from '@posthorn/domain/request/signature.ts';
import type { DeadLetters } from '@posthorn/platform/dead-letters/dead-letters.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';

/** What came of an event. The values are labels of `posthorn_operator_events_total`. */
export type OperatorEventResult = 'delivered' | 'failed';

export interface SendOperatorEventDeps {
  url: string;
  /** As of a webhook: `whsec_` and base64. */
  secret: string;
  /** The waits between attempts, in milliseconds. */
  delaysMs: readonly number[];
  /** Resolves with the status of the answer; rejects when there was none. */
  post: (url: string, headers: Record<string, string>, body: Buffer) => Promise<number>;
  /** Rejects when the process stops. */
  pause: (ms: number) => Promise<void>;
  deadLetters: Pick<DeadLetters, 'put'>;
  onResult: (result: OperatorEventResult) => void;
  logger: Pick<Logger, 'warn'>;
  nowMs: () => number;
}

/** Sends an event to the operator's URL, signed as Standard Webhooks, and tries again a few times. */
export function createSendOperatorEvent(
  deps: SendOperatorEventDeps,
): (record: LogRecord) => Promise<void> {
  const key = standardKey(deps.secret);
  return async (record) => {
    const event = readRecord(() => decodeOperatorEvent(record.value));
    if (event instanceof UnreadableRecordError) {
      await deps.deadLetters.put(record, 'unreadable_record', event.message);
      return;
    }
    const payload = operatorPayloadOf(event);
    for (const delayMs of [0, ...deps.delaysMs]) {
      if (delayMs > 0) await deps.pause(delayMs);
      const timestampSeconds = Math.floor(deps.nowMs() / 1_000);
      const problem = await problemOf(deps, payload, {
        'content-type': 'application/json',
        'webhook-id': event.id,
        'webhook-timestamp': String(timestampSeconds),
        'webhook-signature': standardSignature(key, {
          messageId: event.id,
          timestampSeconds,
          payload,
        }),
      });
      if (problem === null) {
        deps.onResult('delivered');
        return;
      }
      const { id, type } = event;
      deps.logger.warn({ eventId: id, type, problem }, 'operator event not delivered');
    }
    deps.onResult('failed');
  };
}

/** Null when the endpoint took it. */
async function problemOf(
  { url, post }: SendOperatorEventDeps,
  payload: Buffer,
  headers: Record<string, string>,
): Promise<string | null> {
  try {
    const status = await post(url, headers, payload);
    return status >= 200 && status <= 299 ? null : `status ${status}`;
  } catch (error) {
    return messageOf(error);
  }
}
