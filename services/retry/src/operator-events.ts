import { decodeOperatorEvent, operatorPayloadOf } from '@posthorn/domain/operator-events.ts';
import { readRecord, UnreadableRecordError } from '@posthorn/domain/records/records.ts';
import type { DelayTopic, TopicNames } from '@posthorn/domain/records/topics.ts';
import { standardKey, standardSignature } from '@posthorn/domain/request/signature.ts';
import { StoppedError } from '@posthorn/platform/async/keep-trying.ts';
import { pause } from '@posthorn/platform/async/pause.ts';
import type { DeadLetters } from '@posthorn/platform/records/dead-letters.ts';
import type { Consumption, LogRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { messageOf, StartupError } from '@posthorn/platform/service/errors.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { Counter, type Registry } from 'prom-client';
import type { RetryConfig } from './config.ts';
import { openResponse } from './open-response.ts';
import { openFailingWatch } from './watch-failing-endpoints.ts';

interface Parts {
  db: Database;
  records: RecordLog;
  topics: Pick<TopicNames, 'operatorEvents' | 'deliveryFailed'>;
  delayTopics: ReadonlyMap<string, DelayTopic>;
  countPartitions: (topics: readonly string[]) => number;
  deadLetters: DeadLetters;
}

/** After these waits an event is given up; it stays in its topic for seven days. */
const DELAYS_MS = [1_000, 10_000, 60_000, 300_000];
const TIMEOUT_MS = 10_000;

/**
 * Starts to look for endpoints that fail for long, and to send operator events to the URL of the operator; null when
 * there is none. Throws StartupError without a secret.
 */
export async function openOperatorEvents(
  context: ServiceContext<RetryConfig>,
  parts: Parts,
): Promise<Consumption | null> {
  openFailingWatch(context, parts);
  const { config, logger, registry, lifecycle } = context;
  const { records, topics, delayTopics, countPartitions, deadLetters } = parts;
  const { OPERATOR_WEBHOOK_URL: url, OPERATOR_WEBHOOK_SECRET: secret } = config;
  const results = createOperatorEventMetrics(registry);
  if (url === undefined) return null;
  if (secret === undefined) {
    throw new StartupError('OPERATOR_WEBHOOK_SECRET is required with OPERATOR_WEBHOOK_URL.');
  }
  return records.consume({
    groupId: `${config.TOPIC_PREFIX}retry-operator-events`,
    topics: [topics.operatorEvents],
    // It goes on where the groups that park and release have ended.
    sharing: {
      kind: 'evenly',
      after: countPartitions([topics.deliveryFailed, ...delayTopics.keys()]),
    },
    handle: createSendOperatorEvent({
      url,
      secret,
      delaysMs: DELAYS_MS,
      post,
      async pause(ms) {
        await pause(ms, lifecycle.stopping);
        // The record stays uncommitted, and another process sends its event.
        if (lifecycle.stopping.aborted) throw new StoppedError('stopping');
      },
      deadLetters,
      onResult: (result) => {
        results.inc({ result });
      },
      logger,
      nowMs: systemClockMs,
    }),
    inFlightLimits: { pauseAt: 100, resumeAt: 50 },
    maxWaitMs: 500,
    // An event may be tried for six minutes.
    stallMs: 900_000,
  });
}

async function post(url: string, headers: Record<string, string>, body: Buffer): Promise<number> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await openResponse(url, { method: 'POST', headers, body, signal });
  response.destroy();
  return response.statusCode ?? 0;
}

/** Also without a URL: every retry process has the same metrics. */
export function createOperatorEventMetrics(registry: Registry): Counter<'result'> {
  const results = new Counter<'result'>({
    name: 'posthorn_operator_events_total',
    help: 'Operator events that were sent to OPERATOR_WEBHOOK_URL, or given up.',
    labelNames: ['result'],
    registers: [registry],
  });
  for (const result of ['delivered', 'failed'] satisfies OperatorEventResult[]) {
    results.inc({ result }, 0);
  }
  return results;
}

/** What came of an event. The values are labels of `posthorn_operator_events_total`. */
type OperatorEventResult = 'delivered' | 'failed';

interface SendOperatorEventDeps {
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
