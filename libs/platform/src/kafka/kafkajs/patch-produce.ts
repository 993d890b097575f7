import { createRequire } from 'node:module';
import type { TrackedMessage, TrackedSend } from './tracked-message.ts';

interface ProduceRequest {
  topicData: readonly {
    topic: string;
    partitions: readonly { partition: number; messages: readonly Partial<TrackedMessage>[] }[];
  }[];
}

/** The part of a broker of kafkajs, which has one connection for these requests, that is used here. */
export interface PatchedBroker {
  produce: (request: ProduceRequest) => Promise<unknown>;
  apiVersions: () => Promise<object>;
}

interface ProduceResponse {
  topics: readonly {
    topicName: string;
    partitions: readonly { partition: number; errorCode: number }[];
  }[];
}

/** The part of kafkajs's description of a Produce request that is used here. */
export interface PatchedProtocol {
  protocol: (of: { version: number }) => (options: object) => {
    response: { parse: (response: ProduceResponse) => Promise<unknown> };
  };
}

let isPatched = false;

/**
 * A Produce request without an answer is repeated on the same connection. A broker that was frozen executes all of
 * them: after 30 s it had up to three copies of what was under way, 11 % more records. After the patch a broker that has
 * not answered is asked for its versions first, and the records are sent again only when it answers.
 *
 * It also rejects a request as a whole when one partition refuses its records, so that nobody knows which ones are
 * stored. After the patch each message of a send is marked when it is (see `TrackedMessage`).
 */
export function patchProduce(): void {
  if (isPatched) return;
  isPatched = true;
  const require = createRequire(import.meta.url);
  tellRefused(require('kafkajs/src/protocol/requests/produce/index.js') as PatchedProtocol);
  const broker = require('kafkajs/src/broker/index.js') as { prototype: PatchedBroker };
  refuseLate(broker.prototype);
  askBeforeRepeating(broker.prototype);
  markStored(broker.prototype);
}

/** Replaces `produce` by one that sends nothing of a send that has ended. */
export function refuseLate(broker: PatchedBroker): void {
  const { produce } = broker;
  broker.produce = async function (this: PatchedBroker, request) {
    const send = sendOf(request);
    if (send && performance.now() >= send.endsAtMs) {
      throw Object.assign(new Error('the send has taken too long'), { retriable: false });
    }
    return produce.call(this, request);
  };
}

function sendOf({ topicData }: ProduceRequest): TrackedSend | undefined {
  return topicData[0]?.partitions[0]?.messages[0]?.send;
}

/**
 * Replaces `produce` by one that sends nothing to a broker that has not answered since its last time-out. kafkajs asks
 * for the leaders again after such an error, as after that of a broker that does not lead any more: without that it
 * would keep to a broker that hangs for five minutes, although its partitions have another leader after ten seconds.
 */
export function askBeforeRepeating(broker: PatchedBroker): void {
  const unanswered = new WeakSet<PatchedBroker>();
  const { produce } = broker;
  broker.produce = async function (this: PatchedBroker, request) {
    try {
      if (unanswered.has(this)) await this.apiVersions();
      unanswered.delete(this);
      return await produce.call(this, request);
    } catch (error) {
      if (!isTimeout(error)) throw error;
      unanswered.add(this);
      throw Object.assign(error, { type: 'NOT_LEADER_FOR_PARTITION' });
    }
  };
}

function isTimeout(error: unknown): error is Error {
  return error instanceof Error && error.name === 'KafkaJSRequestTimeoutError';
}

/** Replaces `produce` by one that marks the messages that the broker has stored, also those of a request that fails. */
export function markStored(broker: PatchedBroker): void {
  const { produce } = broker;
  broker.produce = function (this: PatchedBroker, request) {
    const response = produce.call(this, request);
    const marked = response.then(
      () => {
        mark(request, () => true);
      },
      (error: unknown) => {
        const refused = refusedIn(error);
        if (refused) mark(request, (topic, partition) => !refused.has(placeOf(topic, partition)));
      },
    );
    sendOf(request)?.requests.push(marked);
    return response;
  };
}

function mark(
  { topicData }: ProduceRequest,
  isStoredIn: (topic: string, partition: number) => boolean,
): void {
  for (const { topic, partitions } of topicData) {
    for (const { partition, messages } of partitions) {
      if (!isStoredIn(topic, partition)) continue;
      for (const message of messages) message.isStored = true;
    }
  }
}

/** Replaces the reading of responses by one whose errors name the partitions that refused their records. */
function tellRefused(produce: PatchedProtocol): void {
  const { protocol } = produce;
  produce.protocol = (of) => {
    const describe = protocol(of);
    return (options) => {
      const described = describe(options);
      const { parse } = described.response;
      const parseOrTell = async (response: ProduceResponse): Promise<unknown> => {
        try {
          return await parse(response);
        } catch (error) {
          // The same object: kafkajs decides by its fields what to do.
          throw Object.assign(error as Error, { refused: refusedBy(response) });
        }
      };
      return { ...described, response: { ...described.response, parse: parseOrTell } };
    };
  };
}

function refusedBy({ topics }: ProduceResponse): ReadonlySet<string> {
  return new Set(
    topics.flatMap(({ topicName, partitions }) =>
      partitions
        .filter(({ errorCode }) => errorCode !== 0)
        .map(({ partition }) => placeOf(topicName, partition)),
    ),
  );
}

/** Null when the broker did not say what it has stored. */
function refusedIn(error: unknown): ReadonlySet<string> | null {
  const isTold = error instanceof Error && 'refused' in error && error.refused instanceof Set;
  return isTold ? (error.refused as ReadonlySet<string>) : null;
}

function placeOf(topic: string, partition: number): string {
  return `${topic}/${partition}`;
}
