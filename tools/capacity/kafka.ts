import { topicNames, topicSpecs } from '@posthorn/domain/records/topics.ts';
import {
  DEFAULT_DEFERRAL_DELAYS,
  deferralDelaysSchema,
} from '@posthorn/domain/schedule/deferral-delays.ts';
import {
  DEFAULT_RETRY_DELAYS,
  retryScheduleSchema,
} from '@posthorn/domain/schedule/retry-schedule.ts';
import { CONSTANTS } from './constants.ts';
import type { Load, Rates } from './load.ts';
import { choice, figure, product, type Line, type Section } from './sheet.ts';

const DAY_MS = 86_400_000;
const DAY_SECONDS = 86_400;
const TERABYTE = 1e12;
const MEGABYTE = 1e6;
/** `delivery-failed`, a delay topic and `retry-due`. */
const RECORDS_PER_RETRY = 3;

const { createdRecordBytes, retryRecordBytes, inlinePayloadBytes, inlineTargets } = CONSTANTS;

const NAMES = topicNames(
  '',
  retryScheduleSchema.parse(DEFAULT_RETRY_DELAYS),
  deferralDelaysSchema.parse(DEFAULT_DEFERRAL_DELAYS),
);
const TOPICS = topicSpecs(NAMES);
const CREATED_DAYS = daysOf(NAMES.messageCreated);
/** The delay topics keep their records longer than this by their delay, ten hours at most. */
const FAILED_DAYS = daysOf(NAMES.deliveryFailed);

function daysOf(topic: string): number {
  return (TOPICS.find(({ name }) => name === topic)?.retentionMs ?? 0) / DAY_MS;
}

export interface KafkaPlan {
  brokers: number;
  /** Copies of partitions in the cluster. */
  replicas: number;
  megabytesPerSecond: number;
  /** Of the cluster. */
  diskTerabytes: number;
}

export function planKafka(load: Load, rates: Rates, partitions: number): KafkaPlan {
  const { kafkaCopies } = load;
  return {
    // As many as there are copies; more of them when their disks or their network are too small.
    brokers: kafkaCopies,
    replicas: TOPICS.length * partitions * kafkaCopies,
    megabytesPerSecond: ((createdBytes(load, rates) + failedBytes(rates)) * kafkaCopies) / MEGABYTE,
    diskTerabytes: createdTerabytes(load, rates) + failedTerabytes(load, rates),
  };
}

/** The payload is in each record, unless it is large or the message has many targets. */
function carriedBytes({ payloadBytes, targetsPerMessage }: Load): number {
  const isCarried =
    payloadBytes <= inlinePayloadBytes.value && targetsPerMessage <= inlineTargets.value;
  return isCarried ? payloadBytes : 0;
}

function createdBytes(load: Load, { deliveries }: Rates): number {
  return deliveries * (carriedBytes(load) + createdRecordBytes.value);
}

function failedBytes({ retries }: Rates): number {
  return retries * RECORDS_PER_RETRY * retryRecordBytes.value;
}

function createdTerabytes(load: Load, rates: Rates): number {
  return (createdBytes(load, rates) * DAY_SECONDS * CREATED_DAYS * load.kafkaCopies) / TERABYTE;
}

function failedTerabytes(load: Load, rates: Rates): number {
  return (failedBytes(rates) * DAY_SECONDS * FAILED_DAYS * load.kafkaCopies) / TERABYTE;
}

export function kafkaSection(load: Load, rates: Rates, partitions: number): Section {
  const { brokers, replicas } = planKafka(load, rates, partitions);
  return {
    title: 'Kafka',
    lines: [
      choice(
        'brokers',
        'one for each copy; more when the disk or the traffic of one is too much',
        brokers,
        'brokers',
      ),
      product(
        'partitions with their copies',
        `${TOPICS.length} topics × ${partitions} partitions × ${load.kafkaCopies} copies`,
        replicas,
        'in the cluster',
      ),
      ...byteLines(load, rates, partitions),
    ],
  };
}

function byteLines(load: Load, rates: Rates, partitions: number): Line[] {
  const { megabytesPerSecond, diskTerabytes } = planKafka(load, rates, partitions);
  const created = createdTerabytes(load, rates);
  const failed = failedTerabytes(load, rates);
  const record = `(${figure(carriedBytes(load))} + ${createdRecordBytes.value}) bytes`;
  const first = `${figure(rates.deliveries)} records × ${record}`;
  const later = `${figure(rates.retries)} retries × ${RECORDS_PER_RETRY} records × ${retryRecordBytes.value} bytes`;
  const copies = `${load.kafkaCopies} copies`;
  const kept = (days: number): string =>
    `${figure(DAY_SECONDS)} s × ${days} days × ${copies} ÷ ${figure(TERABYTE)}`;
  return [
    product(
      'written to disks',
      `(${first} + ${later}) × ${copies} ÷ ${figure(MEGABYTE)}`,
      megabytesPerSecond,
      'MB/s',
    ),
    product('message-created', `${first} × ${kept(CREATED_DAYS)}`, created, 'TB'),
    product('failures and retries', `${later} × ${kept(FAILED_DAYS)}`, failed, 'TB'),
    product(
      'disk of the cluster',
      `${figure(created)} TB + ${figure(failed)} TB`,
      diskTerabytes,
      'TB',
    ),
  ];
}
