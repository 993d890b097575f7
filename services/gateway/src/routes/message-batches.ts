import { MAX_BODY_BYTES } from '@posthorn/domain/message.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import { z } from 'zod';
import { type Failed, failedBy, type NewMessage } from '../accept/accept-message.ts';
import type { AcceptOutcome } from '../accept/idempotency.ts';
import { type Address, lookUpEach } from '../accept/targets.ts';
import { toApiError } from '../api-error.ts';
import type { ErrorCode } from '../error-codes.ts';
import type { Gateway } from '../gateway.ts';
import { createReadList } from '../http/body.ts';
import {
  type ApiRequest,
  IDEMPOTENCY_KEY,
  idempotencyKey,
  route,
  type Route,
} from '../http/route.ts';
import { isMarked } from '../projects/uids.ts';
import { optionalFields } from './fields.ts';
import { createdMessagesSchema, describeOutcomes } from './message-responses.ts';
import { messageFields, newMessageOf, withOneAddress } from './messages.ts';

const MAX_MESSAGES = 1_000;
const MAX_BYTES = 1_048_576;

const batchMessage = withOneAddress(
  z.object({
    ...messageFields,
    ...optionalFields({
      idempotencyKey: idempotencyKey.meta({
        description:
          'Makes the message safe to repeat, as the header `Idempotency-Key` does for a single one. By default the key in the header of this request, `#` and the place of the message',
        example: 'order-17-paid',
      }),
    }),
  }),
  'BatchMessage',
);

const body = z
  .object({ messages: z.array(batchMessage).min(1).max(MAX_MESSAGES) })
  .meta({ id: 'CreateMessages' });

const readMessages = createReadList({
  name: 'messages',
  maxEntries: MAX_MESSAGES,
  schema: batchMessage,
  large: { field: 'payload', maxBytes: MAX_BODY_BYTES },
});

/** The texts of the messages, with two bytes for each character. */
const TEXT_COPIES = 2;
/** A message, its outcome and its result, as objects and as text. */
const MESSAGE_BYTES = 1_024;

type BatchRequest = ApiRequest<z.infer<typeof body>, Record<string, never>>;

/** See docs/contract.md C22. */
export function messageBatchRoutes(gateway: Gateway): Route[] {
  const batch = route({
    operationId: 'createMessages',
    method: 'post',
    path: '/webhook-messages/batch',
    versionedOnly: true,
    scope: 'messages:write',
    queue: { hasRoom: gateway.hasRoomToAccept },
    tag: 'Webhook messages',
    summary: 'Send up to 1,000 messages',
    description:
      'Sends messages in one request of at most 1 MiB (1,048,576 bytes), each with a result of its own. A message that is not valid refuses the request, and nothing is stored. For the rate limit each message counts as a request.',
    headers: [IDEMPOTENCY_KEY],
    body,
    ownBody: { maxBytes: MAX_BYTES },
    response: { status: 202, message: 'Messages processed', data: createdMessagesSchema },
    async handle(request) {
      const outcomes = await accept(gateway, request, await readAll(request));
      const refused = codesOf(outcomes);
      // The status describes the request: messages of it may be stored, unless it is 503.
      if (refused.get('unavailable') === outcomes.length) throw errorOf(outcomes[0]);
      logFaults(gateway, request, outcomes);
      const data = describeOutcomes(outcomes);
      return { data, messages: { accepted: data.accepted, refused } };
    },
  });
  return [batch];
}

/** Throws ApiError 400 for a message that is not valid, 429 for more messages than the company may send now. */
async function readAll(request: BatchRequest): Promise<NewMessage[]> {
  const { bytes } = request.body;
  request.reserve(bytes.length * TEXT_COPIES);
  const key = request.header('idempotency-key');
  const messages = await readMessages(bytes, {
    earlier: request.problems,
    nextSlice: request.nextSlice,
    toEntry: (entry, index) => {
      const byPlace = key === undefined ? undefined : `${key}#${index}`;
      return newMessageOf(request, entry, entry.value.idempotencyKey ?? byPlace);
    },
  });
  request.reserve(messages.length * MESSAGE_BYTES);
  request.countAs(messages.length);
  return messages;
}

async function accept(
  { acceptMany }: Gateway,
  request: BatchRequest,
  messages: readonly NewMessage[],
): Promise<AcceptOutcome[]> {
  const isInOrder = messages.some(({ given }) => given?.orderingKey !== undefined) || undefined;
  const found = await identify(request, messages);
  const identified = isInOrder ? upToUnavailable(found) : found;
  const known = identified.filter(isKnown);
  const { nextSlice, deadline } = request;
  const outcomes = await acceptMany(known, { nextSlice, deadline: deadline(), isInOrder });
  let next = 0;
  return identified.map((each) =>
    isKnown(each) ? requiredAt(outcomes, next++, 'outcome of the message') : each,
  );
}

/** What is behind an unavailable message is unavailable too: when the batch is sent again, it must not be in front. */
function upToUnavailable(messages: readonly (NewMessage | Failed)[]): (NewMessage | Failed)[] {
  let broken: Failed | null = null;
  return messages.map((each) => {
    if (!isKnown(each) && toApiError(each.error).code === 'unavailable') broken ??= each;
    return broken ?? each;
  });
}

const isKnown = (each: NewMessage | Failed): each is NewMessage => !('error' in each);

/**
 * Puts ids in place of uids, and fails what is not in the app of the key. Each different address is looked up once; most
 * batches have none that needs it.
 */
async function identify(
  request: BatchRequest,
  messages: readonly NewMessage[],
): Promise<(NewMessage | Failed)[]> {
  const isConfined = request.caller.appId !== null;
  const isUnknown = (address: Address): boolean => isConfined || isMarked(idOf(address));
  const unknown = messages.map(({ address }) => address).filter(isUnknown);
  if (unknown.length === 0) return [...messages];
  const found = await lookUpEach(unknown, (address) =>
    identifyOne(request, address).catch(failedBy),
  );
  return messages.map((message) => {
    const address = isUnknown(message.address) ? found(message.address) : message.address;
    return 'error' in address ? address : { ...message, address };
  });
}

async function identifyOne(request: BatchRequest, address: Address): Promise<Address> {
  return address.kind === 'app'
    ? { ...address, ...(await request.identify({ appId: address.appId })) }
    : { ...address, ...(await request.identify({ webhookId: address.webhookId })) };
}

function idOf(address: Address): string {
  return address.kind === 'app' ? address.appId : address.webhookId;
}

function errorOf(outcome: AcceptOutcome | undefined): unknown {
  return outcome?.kind === 'failed' ? outcome.error : undefined;
}

/** How many failed, by code. */
function codesOf(outcomes: readonly AcceptOutcome[]): Map<ErrorCode, number> {
  const counts = new Map<ErrorCode, number>();
  for (const outcome of outcomes) {
    if (outcome.kind !== 'failed') continue;
    const { code } = toApiError(outcome.error);
    counts.set(code, (counts.get(code) ?? 0) + 1);
  }
  return counts;
}

/** The response of a batch is 202 although a fault of ours, or of MongoDB, is behind some of its results. */
function logFaults(
  { logger }: Gateway,
  { requestId, caller: { companyId } }: BatchRequest,
  outcomes: readonly AcceptOutcome[],
): void {
  const faults = outcomes
    .map(errorOf)
    .filter((error) => error !== undefined && isServerError(error));
  if (faults.length === 0) return;
  const [err] = faults;
  logger.error({ err, requestId, companyId, failed: faults.length }, 'messages of a batch failed');
}

const isServerError = (error: unknown): boolean => toApiError(error).status >= 500;
