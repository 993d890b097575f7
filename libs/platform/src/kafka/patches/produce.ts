import type { Message } from 'kafkajs';
import { createRequire } from 'node:module';

/** A message with its result: kafkajs hands the same object to its broker. */
export interface TrackedMessage extends Message {
  topic: string;
  /** True when every in-sync replica has it. */
  isStored: boolean;
  send: TrackedSend;
}

/** The part that the messages of one send share. */
export interface TrackedSend {
  /** No request begins from then on, by the monotonic clock: the caller has given the send up, and repeats it. */
  endsAtMs: number;
  /** One for each request with messages of this send. Each resolves when its messages are marked. */
  requests: Promise<void>[];
}

interface ProduceRequest {
  topicData: readonly {
    topic: string;
    partitions: readonly { partition: number; messages: readonly Partial<TrackedMessage>[] }[];
  }[];
}

interface ProduceResponse {
  topics: readonly {
    topicName: string;
    partitions: readonly { partition: number; errorCode: number }[];
  }[];
}

/** The part of a broker of kafkajs, which has one connection for these requests, that is used here. */
export interface PatchedBroker {
  produce: (request: ProduceRequest) => Promise<unknown>;
  apiVersions: () => Promise<object>;
}

/** The part of kafkajs's description of a Produce request that is used here. */
export interface PatchedProtocol {
  protocol: (of: { version: number }) => (options: object) => {
    response: { parse: (response: ProduceResponse) => Promise<unknown> };
  };
}

/** After the patch the error of a response names the partitions that refused their records. */
function patchProtocol(produce: PatchedProtocol): void {
  const { protocol } = produce;
  produce.protocol = (of) => {
    const describe = protocol(of);
    return (options) => {
      const described = describe(options);
      const parse = async (response: ProduceResponse): Promise<unknown> => {
        try {
          return await described.response.parse(response);
        } catch (error) {
          // The same object: kafkajs decides by its fields whether it repeats the request.
          throw Object.assign(error as Error, { refused: refusedBy(response) });
        }
      };
      return { ...described, response: { ...described.response, parse } };
    };
  };
}

function refusedBy({ topics }: ProduceResponse): ReadonlySet<string> {
  return new Set(
    topics.flatMap(({ topicName, partitions }) =>
      partitions
        .filter(({ errorCode }) => errorCode !== 0)
        .map(({ partition }) => `${topicName}/${partition}`),
    ),
  );
}

/**
 * kafkajs repeats a Produce request without an answer on the same connection. A broker that was frozen executes all of
 * them: after 30 s it had up to three copies of the records under way, 11 % more. After the patch a broker that has
 * not answered since its last time-out gets a request for its versions first, and the records only when it answers.
 * Nothing is sent of a send that has ended.
 *
 * kafkajs also rejects a request as a whole when one partition refuses its records, so that nobody knows which ones are
 * stored. After the patch each message of a send is marked when it is.
 */
export function patchBroker(broker: PatchedBroker): void {
  const { produce } = broker;
  const unanswered = new WeakSet<PatchedBroker>();

  async function sendOnce(sender: PatchedBroker, request: ProduceRequest): Promise<unknown> {
    try {
      if (unanswered.has(sender)) await sender.apiVersions();
      unanswered.delete(sender);
      // Checked last: the answer may have taken ten seconds.
      if (performance.now() >= (sendOf(request)?.endsAtMs ?? Infinity)) {
        throw Object.assign(new Error('the send has taken too long'), { retriable: false });
      }
      return await produce.call(sender, request);
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'KafkaJSRequestTimeoutError') throw error;
      unanswered.add(sender);
      // kafkajs requests the leaders again after this type. Otherwise it would keep to a broker that hangs for five
      // minutes, although its partitions have another leader after ten seconds.
      throw Object.assign(error, { type: 'NOT_LEADER_FOR_PARTITION' });
    }
  }

  broker.produce = function (this: PatchedBroker, request) {
    const response = sendOnce(this, request);
    const marked = response.then(
      () => {
        mark(request, new Set());
      },
      (error: unknown) => {
        const hasNames = error instanceof Error && 'refused' in error;
        if (hasNames) mark(request, error.refused as ReadonlySet<string>);
      },
    );
    sendOf(request)?.requests.push(marked);
    return response;
  };
}

function sendOf({ topicData }: ProduceRequest): TrackedSend | undefined {
  return topicData[0]?.partitions[0]?.messages[0]?.send;
}

/** Marks the messages of the request as stored, except those for the partitions that refused them. */
function mark({ topicData }: ProduceRequest, refused: ReadonlySet<string>): void {
  for (const { topic, partitions } of topicData) {
    for (const { partition, messages } of partitions) {
      if (refused.has(`${topic}/${partition}`)) continue;
      for (const message of messages) message.isStored = true;
    }
  }
}

/** Applies both to the broker and the requests of kafkajs. */
export function patchProduce(): void {
  const require = createRequire(import.meta.url);
  patchProtocol(require('kafkajs/src/protocol/requests/produce/index.js') as PatchedProtocol);
  patchBroker((require('kafkajs/src/broker/index.js') as { prototype: PatchedBroker }).prototype);
}
