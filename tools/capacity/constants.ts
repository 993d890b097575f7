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

const SIZING = '[Sizing](../ARCHITECTURE.md#sizing)';
const SIZES = '[sizes](#sizes)';
const CONFIGURATION = '[configuration](configuration.md)';
const STORES = '[the stores](../ARCHITECTURE.md#processes-and-stores)';
const FAN_OUT = 'a fan-out to 1,000 webhooks, 2026-11-21';
const SLOW = '[decision 15](decisions/0015-what-keeps-endpoints-apart.md)';
const RECORDS = '[created-records.ts](../libs/platform/src/outbox/created-records.ts)';
const RESPONSES = '[C9.9](contract.md#c9-the-delivery-request)';

/** Every measured figure of the calculator. A test compares them with the table in docs/scaling.md. */
// prettier-ignore
export const CONSTANTS = {
  gatewayCpuMs: {
    value: 0.26,
    unit: 'ms of CPU',
    meaning: 'a gateway for each message, with its first target',
    source: SIZING,
  },
  gatewayTargetCpuMs: {
    value: 0.067,
    unit: 'ms of CPU',
    meaning: 'a gateway for each further target',
    source: '[fan-out](../bench/results/fan-out-2026-11-21T151013.json)',
  },
  gatewayCores: {
    value: 0.5,
    unit: 'cores',
    meaning: 'what to plan for a gateway: half of a core is left for bursts',
    source: SIZING,
  },
  dispatcherAttempts: {
    value: 2_500,
    unit: 'attempts/s',
    meaning: 'what to plan for a dispatcher',
    source: SIZING,
  },
  dispatcherCpuMs: {
    value: 0.16,
    unit: 'ms of CPU',
    meaning: 'a dispatcher for each attempt',
    source: SIZING,
  },
  dispatcherPlaces: {
    value: 2_000,
    unit: 'attempts',
    meaning: 'at once in a dispatcher (`MAX_IN_FLIGHT`)',
    source: '[configuration](configuration.md)',
  },
  slowLanePlaces: {
    value: 500,
    unit: 'attempts',
    meaning: 'at once in its slow lane (`SLOW_LANE_CONCURRENCY`)',
    source: '[configuration](configuration.md)',
  },
  slowFromMs: {
    value: 1_000,
    unit: 'ms',
    meaning: 'latency from which an endpoint is slow',
    source: '[decision 15](decisions/0015-what-keeps-endpoints-apart.md)',
  },
  retryRetries: {
    value: 1_500,
    unit: 'retries/s',
    meaning: 'what to plan for a retry process',
    source: SIZING,
  },
  retryCpuMs: {
    value: 0.39,
    unit: 'ms of CPU',
    meaning: 'a retry process for each retry',
    source: SIZING,
  },
  mongodbWrites: {
    value: 10_000,
    unit: 'documents/s',
    meaning: 'inserted per core of the primary: 5,000 messages, each with one delivery',
    source: SIZING,
  },
  messageOverheadBytes: {
    value: 282,
    unit: 'bytes',
    meaning: 'of a message in MongoDB besides its payload',
    source: SIZES,
  },
  deliveryBytes: {
    value: 582,
    unit: 'bytes',
    meaning: 'of a delivery in MongoDB with one attempt, without its response',
    source: SIZES,
  },
  attemptBytes: {
    value: 300,
    unit: 'bytes',
    meaning: 'of each further attempt of a delivery, without its response',
    source: SIZES,
  },
  messageIndexBytes: {
    value: 165,
    unit: 'bytes',
    meaning: 'of indexes for a message: 136 measured, and a fifth more',
    source: SIZES,
  },
  deliveryIndexBytes: {
    value: 55,
    unit: 'bytes',
    meaning: 'of indexes for a delivery: 45 measured, and a fifth more',
    source: SIZES,
  },
  keptResponseBytes: {
    value: 4_096,
    unit: 'bytes',
    meaning: 'of a response that are kept at most',
    source: '[C9.9](contract.md#c9-the-delivery-request)',
  },
  storedMessageShare: {
    value: 0.3,
    unit: 'of the size',
    meaning: 'of a message on disk with zstd: 0.21 measured, and two fifths more',
    source: SIZES,
  },
  storedDeliveryShare: {
    value: 0.15,
    unit: 'of the size',
    meaning: 'of a delivery on disk with zstd: 0.07 measured, and twice that',
    source: SIZES,
  },
  createdRecordBytes: {
    value: 360,
    unit: 'bytes',
    meaning: 'of a `message-created` record besides its payload',
    source: SIZES,
  },
  retryRecordBytes: {
    value: 430,
    unit: 'bytes',
    meaning: 'of each record of a failed attempt',
    source: SIZES,
  },
  inlinePayloadBytes: {
    value: 16_384,
    unit: 'bytes',
    meaning: 'largest payload that travels in its records',
    source: '[the stores](../ARCHITECTURE.md#processes-and-stores)',
  },
  inlineTargets: {
    value: 32,
    unit: 'targets',
    meaning: 'most targets of a message whose payload travels in its records',
    source: '[created-records.ts](../libs/platform/src/records/created-records.ts)',
  },
} satisfies Record<string, Constant>;

/** Returns the value of a constant. */
export function valueOf(name: keyof typeof CONSTANTS): number {
  return CONSTANTS[name][0];
}
