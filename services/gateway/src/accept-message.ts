import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { createBatcher } from '@posthorn/platform/batcher.ts';
import type { Logger } from '@posthorn/platform/logger.ts';
import type { WebhookDocument } from '@posthorn/platform/mongo/documents.ts';
import type { InsertOutcome, MessageStore } from '@posthorn/platform/mongo/messages.ts';
import { notFound, unavailable } from './http/api-error.ts';
import type { Publication } from './publish-created.ts';
import type { Doubts } from './settle-doubts.ts';
import type { Address, TargetResolver } from './resolve-targets.ts';

export interface AcceptDeps {
  targets: TargetResolver;
  messages: MessageStore;
  publication: Publication;
  doubts: Doubts;
  /** Names this gateway process in every message it stores. */
  publisherId: string;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  logger: Logger;
}

export interface NewMessage {
  companyId: string;
  address: Address;
  /** The payload's text exactly as it was sent. */
  payload: string;
  requestId: string;
}

export interface AcceptedMessage {
  message: Message;
  /** Oldest first. */
  webhooks: WebhookDocument[];
}

export interface AcceptMessage {
  accept: (request: NewMessage) => Promise<AcceptedMessage>;
  /** Resolves when every insert was answered, also those whose client has gone. */
  idle: () => Promise<void>;
}

/** One insert in flight and 3 ms of linger: measured fastest and cheapest (docs/decisions/0002-group-commit.md). */
const GROUP_COMMIT = { maxItems: 200, lingerMs: 3, maxInFlight: 1 };
/** Beyond this many waiting requests the store is too slow to hope; clients are told to come back. */
const MAX_WAITING = 5_000;

/**
 * Step 1, accept: the majority write of the message is the acceptance. Publication follows behind
 * it and never delays the answer. Throws ApiError 404 for an unknown address, 503 when not stored.
 */
export function createAcceptMessage(deps: AcceptDeps): AcceptMessage {
  const { targets, publisherId, newId, nowMs } = deps;
  const store = createBatcher<Message, InsertOutcome>({
    ...GROUP_COMMIT,
    run: (batch) => storeAndPublish(deps, batch),
  });

  const accept = async (request: NewMessage): Promise<AcceptedMessage> => {
    const { companyId, address, payload, requestId } = request;
    const webhooks = await targets.resolve(companyId, address);
    if (!webhooks) throw notFound(address.kind);
    if (store.size() >= MAX_WAITING) throw unavailable();
    const message: Message = {
      // Nothing may be awaited between here and `store.add`: ids must grow in the order of the inserts.
      id: newId('msg'),
      companyId,
      appId: address.kind === 'app' ? address.appId : null,
      payload,
      targets: webhooks.map(({ _id }) => _id),
      publisherId,
      requestId,
      createdAtMs: nowMs(),
    };
    const outcome = await store.add(message);
    if (outcome !== 'stored') throw unavailable();
    return { message, webhooks };
  };
  return { accept, idle: store.idle };
}

async function storeAndPublish(
  { messages, publication, doubts, logger }: AcceptDeps,
  batch: Message[],
): Promise<InsertOutcome[]> {
  const outcomes = await messages.insertAll(batch);
  const refused = outcomes.filter((outcome) => outcome === 'refused').length;
  if (refused > 0) logger.error({ refused }, 'messages refused by the store');
  doubts.add(batch.filter((_, index) => outcomes[index] === 'doubtful'));
  publication.add(batch.filter((_, index) => outcomes[index] === 'stored'));
  return outcomes;
}
