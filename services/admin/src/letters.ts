import { deliveryIdOf, isId } from '@posthorn/domain/ids.ts';
import { type DeliveryRef, refOf } from '@posthorn/domain/delivery/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { readRecord, UnreadableRecordError } from '@posthorn/domain/records/record-value.ts';
import {
  decodeEndedAttempt,
  decodeMessageCreated,
  recordKindOf,
} from '@posthorn/domain/records/records.ts';
import { decodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import { topicNames } from '@posthorn/domain/records/topics.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import {
  DEAD_LETTER_REASONS,
  type DeadLetter,
  isExhaustion,
  type LetterTopics,
  readDeadLetter,
} from '@posthorn/platform/records/dead-letters.ts';
import {
  assertKafkaReachable,
  createKafkaClient,
  kafkaAccessOf,
} from '@posthorn/platform/kafka/connect.ts';
import {
  readTopic,
  type ReadTopicOptions,
  type StoredRecord,
} from '@posthorn/platform/kafka/read-topic.ts';
import { createLogger, type Logger } from '@posthorn/platform/service/logger.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import { kafkaAccess, plaintextStores } from '@posthorn/platform/service/store-settings.ts';
import type { Kafka } from 'kafkajs';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { parseOptions, timeOption as time } from './command.ts';

/** The content of a letter's record. */
interface LetterContent extends DeliveryRef {
  deliveryId: string;
  /** Number of the attempt that follows when the record is processed; null when none does. */
  nextAttemptNumber: number | null;
  /** Other fields for an operator to see; never the payload. */
  details: Readonly<Record<string, string | number | boolean | null>>;
}

export interface Letter extends DeadLetter {
  /** Its place; with `exhausted:` before it in the topic of exhausted deliveries. */
  id: string;
  /** True if the record came from a topic that Posthorn reads. */
  hasKnownSource: boolean;
  /** Null when this version cannot read the record. */
  content: LetterContent | null;
}

const EXHAUSTED = 'exhausted:';

type Decode = (value: Buffer) => LetterContent;

/** Returns a function that parses letters of the installation whose topics have this prefix. */
export function createLetterReader(
  prefix: string,
): (record: Omit<StoredRecord, 'stored'>) => Letter {
  const { exhaustedDeliveries } = topicNames(prefix, [], []);
  return (record) => {
    const letter = readDeadLetter(record);
    const isExhausted = record.topic === exhaustedDeliveries;
    const decode = decoderOf(prefix, letter.source.topic);
    const content = decode && readRecord(() => decode(letter.record.value));
    return {
      ...letter,
      id: isExhausted ? EXHAUSTED + letter.place : letter.place,
      hasKnownSource: decode !== null,
      content: content instanceof UnreadableRecordError ? null : content,
    };
  };
}

function decoderOf(prefix: string, topic: string): Decode | null {
  switch (recordKindOf(prefix, topic)) {
    case 'message_created':
      return (value) => contentOfDue(decodeMessageCreated(value));
    case 'delivery_failed':
      return contentOfEnded;
    case 'retry_due':
      return (value) => contentOfDue(decodeRetryDue(value));
    case null:
      return null;
  }
}

function contentOfDue(due: DueAttempt): LetterContent {
  const { attemptNumber, trigger, dueAtMs, payload } = due;
  return {
    ...refOf(due),
    deliveryId: due.deliveryId,
    nextAttemptNumber: attemptNumber,
    details: {
      attemptNumber,
      trigger,
      dueAt: isoTime(dueAtMs),
      ...(payload && { payloadBytes: payload.length }),
    },
  };
}

function contentOfEnded(value: Buffer): LetterContent {
  const ended = decodeEndedAttempt(value);
  const { messageId, webhookId, attemptNumber, outcome, statusCode, endedAtMs } = ended;
  const ids = { ...refOf(ended), deliveryId: deliveryIdOf(messageId, webhookId) };
  const details = { attemptNumber, outcome, statusCode, endedAt: isoTime(endedAtMs) };
  switch (ended.kind) {
    case 'failed':
      return { ...ids, nextAttemptNumber: attemptNumber + 1, details };
    case 'disables':
      return { ...ids, nextAttemptNumber: null, details: { ...details, disables: ended.reason } };
  }
}

/** Returns ISO 8601, or the number itself if no date can hold it. */
export function isoTime(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString();
}

const id = (prefix: 'wh' | 'msg') =>
  z.string().refine((text) => isId(prefix, text), `must be an id such as ${prefix}_…`);

const filterSchema = z.object({
  reason: z
    .enum(DEAD_LETTER_REASONS, `must be one of ${DEAD_LETTER_REASONS.join(', ')}`)
    .optional(),
  sourceTopic: z.string().optional(),
  webhook: id('wh').optional(),
  message: id('msg').optional(),
  since: time.optional(),
  until: time.optional(),
});

/** Selects letters. A field that is not given matches every letter. Both times are inclusive. */
type LetterFilter = z.output<typeof filterSchema>;

const MAX_LISTED = 10_000;

const limitSchema = z.coerce
  .number('must be a whole number')
  .int('must be a whole number')
  .min(1, `must be from 1 to ${MAX_LISTED}`)
  .max(MAX_LISTED, `must be from 1 to ${MAX_LISTED}`);

const placeSchema = z
  .string()
  .regex(
    /^(exhausted:)?\d{1,9}:\d{1,15}$/,
    'must be partition:offset or exhausted:partition:offset, as the list shows it',
  );

/** Throws an error that names every invalid option. */
export function parseFilter(options: object): LetterFilter {
  return parseOptions(filterSchema, options);
}

export function parseLimit(limit: string): number {
  return parseOptions(z.object({ limit: limitSchema }), { limit }).limit;
}

/** The position of a letter. */
interface Place {
  /** In the topic of exhausted deliveries, not in that of dead letters. */
  isExhausted: boolean;
  partition: number;
  offset: number;
}

export function parsePlace(text: string): Place {
  const { id } = parseOptions(z.object({ id: placeSchema }), { id: text });
  const isExhausted = id.startsWith(EXHAUSTED);
  const numbers = id.split(':').slice(-2).map(Number);
  return {
    isExhausted,
    partition: requiredAt(numbers, 0, 'partition'),
    offset: requiredAt(numbers, 1, 'offset'),
  };
}

export function placeText({ isExhausted, partition, offset }: Place): string {
  return `${isExhausted ? EXHAUSTED : ''}${partition}:${offset}`;
}

/** The letters to replay: the one at `place`, or those that match the filter. */
export interface Selection {
  place: Place | null;
  filter: LetterFilter;
}

/** Throws unless exactly one of id, filters and `--all` is given. */
export function parseSelection(id: string | undefined, options: { all?: boolean }): Selection {
  const filter = parseFilter(options);
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  const ways = [id !== undefined, isFiltered, options.all === true].filter(Boolean);
  if (ways.length === 0) {
    throw new Error(
      'Name a dead letter by its id, give filters, or give --all for every dead letter.',
    );
  }
  if (ways.length > 1) throw new Error('Give an id, filters or --all, not more than one of them.');
  return { place: id === undefined ? null : parsePlace(id), filter };
}

/** The filter may name a topic with or without the prefix of the installation. */
export function matchesFilter(letter: Letter, filter: LetterFilter, prefix: string): boolean {
  const { reason, sourceTopic: topic, webhook, message, since, until } = filter;
  if (reason !== undefined && letter.reason !== reason) return false;
  if (topic !== undefined && ![topic, prefix + topic].includes(letter.source.topic)) return false;
  if (webhook !== undefined && webhookIdOf(letter) !== webhook) return false;
  if (message !== undefined && letter.content?.messageId !== message) return false;
  if (since !== undefined && letter.atMs < since) return false;
  return until === undefined || letter.atMs <= until;
}

/** Records are keyed by webhook id, so that most unreadable records show their webhook too. */
export function webhookIdOf({ content, record }: Letter): string | null {
  return content?.webhookId ?? (isId('wh', record.key) ? record.key : null);
}

const { TOPIC_PREFIX } = settings.kafka;

export const lettersConfig = z.object({ ...kafkaAccess, ...plaintextStores, TOPIC_PREFIX });

type LettersConfig = z.infer<typeof lettersConfig>;

export interface Letters {
  /** Visits the letters that are in the topics at the start and may match, in the order of each partition. */
  read: (
    which: Pick<LetterFilter, 'reason' | 'since'> | Place,
    visit: (letter: Letter) => Promise<void>,
  ) => Promise<void>;
  kafka: Kafka;
  prefix: string;
}

/** Throws StartupError if Kafka does not respond. */
export async function openLetters(config: LettersConfig): Promise<Letters> {
  const { TOPIC_PREFIX: prefix } = config;
  const access = kafkaAccessOf(config);
  const logger = silent();
  const kafka = createKafkaClient('posthorn-admin', access, logger);
  await assertKafkaReachable(kafka, access.brokers);
  const toLetter = createLetterReader(prefix);
  const read = (
    topic: string,
    which: Pick<ReadTopicOptions, 'sinceMs' | 'only'>,
    visit: (letter: Letter) => Promise<void>,
  ) =>
    readTopic(kafka, {
      ...which,
      topic,
      groupId: `${prefix}admin-${randomUUID()}`,
      logger,
      visit: (record) => visit(toLetter(record)),
    });
  const topics = topicNames(prefix, [], []);
  return {
    kafka,
    prefix,
    async read(which, visit) {
      if ('partition' in which) {
        const topic = which.isExhausted ? topics.exhaustedDeliveries : topics.deadLetters;
        await read(topic, { only: [which] }, visit);
        return;
      }
      for (const topic of topicsWith(which.reason, topics)) {
        await read(topic, { sinceMs: which.since }, visit);
      }
    },
  };
}

export function topicsWith(
  reason: string | undefined,
  { deadLetters, exhaustedDeliveries }: LetterTopics,
): string[] {
  if (reason === undefined) return [deadLetters, exhaustedDeliveries];
  return [isExhaustion(reason) ? exhaustedDeliveries : deadLetters];
}

/** Throws if there is no letter at this place, or no longer one. */
export async function findLetter(letters: Letters, place: Place): Promise<Letter> {
  const found: Letter[] = [];
  await letters.read(place, (letter) => Promise.resolve(void found.push(letter)));
  const [letter] = found;
  if (!letter) throw new Error(`There is no dead letter ${placeText(place)}.`);
  return letter;
}

/** Commands print their results and do not log. */
export const silent = (): Logger => createLogger('admin', 'silent');
