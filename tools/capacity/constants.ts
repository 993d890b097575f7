/** The condition for a value of an option, for the error message, and its check. */
interface Check {
  must: string;
  accepts: (value: number) => boolean;
}

const positive: Check = { must: 'a number above 0', accepts: (value) => value > 0 };
const atLeastOne: Check = { must: 'a number of 1 or more', accepts: (value) => value >= 1 };
const wholeNumber: Check = {
  must: 'a whole number of 1 or more',
  accepts: (value) => Number.isSafeInteger(value) && value >= 1,
};
const share: Check = {
  must: 'a share from 0 to below 1, such as 0.02',
  accepts: (value) => value >= 0 && value < 1,
};

/** Without a fallback an option must be given. */
type Option = readonly [load: string, fallback: number | undefined, check: Check, meaning: string];

/** The options of the command by their names, and the number of the load that each of them is. */
// prettier-ignore
export const OPTIONS = {
  rate: ['messagesPerSecond', undefined, positive, 'messages per second at the peak'],
  'fan-out': ['targetsPerMessage', 1, positive, 'webhooks that a message goes to, on average'],
  days: ['days', 30, wholeNumber, 'RETENTION_DAYS: how long messages and deliveries are kept'],
  'payload-bytes': ['payloadBytes', 1_000, positive, 'mean size of a payload'],
  'response-bytes': ['responseBytes', 100, positive, 'mean size of a response; 4,096 bytes are kept at most'],
  'endpoint-latency-ms': ['endpointLatencyMs', 100, positive, 'mean time of an attempt; one that times out takes 15,000'],
  'failure-share': ['failureShare', 0.02, share, 'share of attempts that fail; retries fail as often'],
  growth: ['growth', 2, atLeastOne, 'partitions for this many times the processes needed now'],
  'kafka-copies': ['kafkaCopies', 3, wholeNumber, 'TOPIC_REPLICATION: copies of each partition'],
} as const satisfies Record<string, Option>;

/** The load that an installation must carry. */
export type Load = Record<(typeof OPTIONS)[keyof typeof OPTIONS][0], number>;

/** A figure that the calculator rests on, and a page that has it, as a link from docs/. */
export type Constant = readonly [value: number, unit: string, meaning: string, source: string];

export const ONE_PROCESS = '[one process](scaling.md#one-process)';
const SIZES = '[sizes](scaling.md#sizes)';
const CONFIGURATION = '[configuration](configuration.md)';
const STORES = '[the stores](../ARCHITECTURE.md#processes-and-stores)';
const SLOW = '[decision 15](decisions/0015-what-keeps-endpoints-apart.md)';
const RECORDS = '[created-records.ts](../libs/platform/src/records/created-records.ts)';
const RESPONSES = '[C9.9](contract.md#c9-the-delivery-request)';

/** Every measured figure of the calculator. A test compares those of docs/scaling.md with that page. */
// prettier-ignore
export const CONSTANTS = {
  gatewayCpuMs: [0.26, 'ms of CPU', 'a gateway for each message, with its first target', ONE_PROCESS],
  gatewayTargetCpuMs: [0.067, 'ms of CPU', 'a gateway for each further target', ONE_PROCESS],
  gatewayCores: [0.5, 'cores', 'what to plan for a gateway: half of a core is left for bursts', ONE_PROCESS],
  dispatcherAttempts: [2_500, 'attempts/s', 'what to plan for a dispatcher', ONE_PROCESS],
  dispatcherCpuMs: [0.16, 'ms of CPU', 'a dispatcher for each attempt', ONE_PROCESS],
  dispatcherPlaces: [2_000, 'attempts', 'at once in a dispatcher (`MAX_IN_FLIGHT`)', CONFIGURATION],
  slowLanePlaces: [500, 'attempts', 'at once in its slow lane', SLOW],
  slowFromMs: [1_000, 'ms', 'latency from which an endpoint is slow', SLOW],
  retryRetries: [1_500, 'retries/s', 'what to plan for a retry process', ONE_PROCESS],
  retryCpuMs: [0.39, 'ms of CPU', 'a retry process for each retry', ONE_PROCESS],
  mongodbWrites: [10_000, 'documents/s', 'inserted per core of the primary: 5,000 messages, each with one delivery', ONE_PROCESS],
  messageOverheadBytes: [282, 'bytes', 'of a message in MongoDB besides its payload', SIZES],
  deliveryBytes: [582, 'bytes', 'of a delivery in MongoDB with one attempt, without its response', SIZES],
  attemptBytes: [300, 'bytes', 'of each further attempt of a delivery, without its response', SIZES],
  messageIndexBytes: [165, 'bytes', 'of indexes for a message: 136 measured, and a fifth more', SIZES],
  deliveryIndexBytes: [55, 'bytes', 'of indexes for a delivery: 45 measured, and a fifth more', SIZES],
  keptResponseBytes: [4_096, 'bytes', 'of a response that are kept at most', RESPONSES],
  storedMessageShare: [0.3, 'of the size', 'of a message on disk with zstd: 0.21 measured, and two fifths more', SIZES],
  storedDeliveryShare: [0.15, 'of the size', 'of a delivery on disk with zstd: 0.07 measured, and twice that', SIZES],
  createdRecordBytes: [360, 'bytes', 'of a `message-created` record besides its payload', SIZES],
  retryRecordBytes: [430, 'bytes', 'of each record of a failed attempt', SIZES],
  inlinePayloadBytes: [16_384, 'bytes', 'largest payload that travels in its records', STORES],
  inlineTargets: [32, 'targets', 'most targets of a message whose payload travels in its records', RECORDS],
} satisfies Record<string, Constant>;

/** Returns the value of a constant. */
export function valueOf(name: keyof typeof CONSTANTS): number {
  return CONSTANTS[name][0];
}
