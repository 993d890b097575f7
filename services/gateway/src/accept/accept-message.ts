import type { Message } from '@posthorn/domain/message.ts';
import { createAdaptiveLinger } from '@posthorn/platform/async/adaptive-linger.ts';
import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import type { InsertOutcome, MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import type { CreatedMessage } from '../http/answers/message.ts';
import { cancelDisabled, type CancelDisabledDeps } from '../webhooks/cancel-disabled.ts';
import {
  formMessage,
  type Arrived,
  type FormDeps,
  type Formed,
  type NewMessage,
} from './form-message.ts';
import { notFound, unavailable } from '../http/api-error.ts';
import type { Publication } from '../outbox/publish-created.ts';
import type { TargetResolver } from './resolve-targets.ts';
import type { Doubts } from '../outbox/unconfirmed-inserts.ts';
import { createWaitingRoom } from './waiting-room.ts';
import { bytesOf, costOf } from './weigh-request.ts';

export type { NewMessage } from './form-message.ts';

export interface AcceptDeps extends FormDeps, CancelDisabledDeps {
  targets: Pick<TargetResolver, 'resolve'>;
  messages: Pick<MessageStore, 'insertAll'>;
  publication: Pick<Publication, 'add'>;
  doubts: Pick<Doubts, 'add'>;
  /** What requests that wait may hold in memory, in bytes. */
  acceptQueueBytes: number;
  /** The clock of the process. */
  monotonicMs: () => number;
}

/** The `data` of the answer; null when another message has the same idempotency key. */
export type Accepted = CreatedMessage | null;

export interface AcceptMessage {
  accept: (request: NewMessage) => Promise<Accepted>;
  /** Resolves when every insert was answered, also those whose client has gone. */
  idle: () => Promise<void>;
  /** What the requests that wait hold, by estimate. */
  usedBytes: () => number;
}

/**
 * One insert in flight: ids must grow in the order of the inserts, and it was measured fastest and
 * cheapest (docs/decisions/0002-group-commit.md). `maxItems` is a sum of costs (see costOf).
 */
const GROUP_COMMIT = { maxItems: 200, maxInFlight: 1 };
/**
 * Below 375 messages/s nobody waits. What 2 to 6 ms cost and bring at 650/s is in
 * docs/decisions/0022-companies-take-turns-in-the-gateway.md.
 */
const LINGER = { maxLingerMs: 4, minExpected: 1.5, enough: 16, patience: 3 };
/** Beyond so many waiting requests the store is too slow to hope; clients are told to come back. */
const MAX_WAITING = 5_000;

/** What became of one request of a batch. */
type Settled = (Formed & { outcome: InsertOutcome }) | Failed;

interface Failed {
  /** Why no message could be formed of it. */
  error: Error;
}

/**
 * Step 1, accept: the majority write of the message is the acceptance. Companies take turns in the
 * batches. Publication follows behind the write and never delays the answer. Throws ApiError 404
 * for an unknown address, 503 when not stored.
 */
export function createAcceptMessage(deps: AcceptDeps): AcceptMessage {
  const room = createWaitingRoom({ places: MAX_WAITING, bytes: deps.acceptQueueBytes });
  const store = createBatcher<Arrived, Settled>({
    ...GROUP_COMMIT,
    lingerMs: createAdaptiveLinger(LINGER, deps.monotonicMs),
    keyOf: ({ request }) => request.companyId,
    costOf,
    run: (batch) => storeAndPublish(deps, batch),
  });

  const accept = async (request: NewMessage): Promise<Accepted> => {
    const { companyId, address } = request;
    const webhooks = await deps.targets.resolve(companyId, address);
    if (!webhooks) throw notFound(address.kind);
    const arrived = { request, webhooks };
    const leave = room.enter(companyId, bytesOf(arrived));
    if (!leave) throw unavailable();
    const settled = await store.add(arrived).finally(leave);
    if ('error' in settled) throw settled.error;
    if (settled.outcome === 'repeated') return null;
    if (settled.outcome !== 'stored') throw unavailable();
    await cancelDisabled(deps, settled.message);
    return settled.answer;
  };
  return { accept, idle: store.idle, usedBytes: room.usedBytes };
}

async function storeAndPublish(deps: AcceptDeps, batch: readonly Arrived[]): Promise<Settled[]> {
  const formed = batch.map((arrived) => tryToForm(deps, arrived));
  const messages = formed.flatMap((each) => ('error' in each ? [] : [each.message]));
  const outcomes = messages.length === 0 ? [] : await deps.messages.insertAll(messages);
  handOn(deps, messages, outcomes);
  const outcomeOf = new Map(messages.map((message, index) => [message, outcomes[index]]));
  return formed.map((each) =>
    'error' in each ? each : { ...each, outcome: outcomeOf.get(each.message) ?? 'doubtful' },
  );
}

/** What cannot be formed must not fail the others of its batch. */
function tryToForm(deps: AcceptDeps, arrived: Arrived): Formed | Failed {
  try {
    return formMessage(deps, arrived);
  } catch (error) {
    return { error: error instanceof Error ? error : new Error(messageOf(error)) };
  }
}

function handOn(
  { publication, doubts, logger }: AcceptDeps,
  messages: readonly Message[],
  outcomes: readonly InsertOutcome[],
): void {
  const refused = outcomes.filter((outcome) => outcome === 'refused').length;
  if (refused > 0) logger.error({ refused }, 'messages refused by the store');
  doubts.add(messages.filter((_, index) => outcomes[index] === 'doubtful'));
  publication.add(messages.filter((_, index) => outcomes[index] === 'stored'));
}
