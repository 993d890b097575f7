import { randomUUID } from 'node:crypto';
import { topicNames } from '@posthorn/domain/records/topics.ts';
import { kafkaAccessOf } from '@posthorn/platform/kafka/connection/access.ts';
import {
  assertKafkaReachable,
  createKafkaClient,
} from '@posthorn/platform/kafka/connection/connect.ts';
import { readTopic, type ReadTopicOptions } from '@posthorn/platform/kafka/reading/read-topic.ts';
import { createLogger, type Logger } from '@posthorn/platform/service/logger.ts';
import { settings } from '@posthorn/platform/service/settings/settings.ts';
import { kafkaAccess, plaintextStores } from '@posthorn/platform/service/stores/store-settings.ts';
import type { Kafka } from 'kafkajs';
import { z } from 'zod';
import type { Place } from './letter-filter.ts';
import { createLetterReader, type Letter } from './read-letter.ts';

const { TOPIC_PREFIX } = settings.kafka;

export const lettersConfig = z.object({ ...kafkaAccess, ...plaintextStores, TOPIC_PREFIX });

export type LettersConfig = z.infer<typeof lettersConfig>;

export interface Letters {
  /** Visits the letters that are in the topic at the start, in the order of each partition. */
  read: (
    which: Pick<ReadTopicOptions, 'sinceMs' | 'only'>,
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
  const { deadLetters: topic } = topicNames(prefix, [], []);
  return {
    kafka,
    prefix,
    read: (which, visit) =>
      readTopic(kafka, {
        ...which,
        topic,
        groupId: `${prefix}admin-${randomUUID()}`,
        logger,
        visit: (record) => visit(toLetter(record)),
      }),
  };
}

/** Throws if there is no letter at this place, or no longer one. */
export async function findLetter(letters: Letters, place: Place): Promise<Letter> {
  const found: Letter[] = [];
  await letters.read({ only: place }, (letter) => Promise.resolve(void found.push(letter)));
  const [letter] = found;
  if (!letter) throw new Error(`There is no dead letter ${place.partition}:${place.offset}.`);
  return letter;
}

/** Commands print their results and do not log. */
export const silent = (): Logger => createLogger('admin', 'silent');
