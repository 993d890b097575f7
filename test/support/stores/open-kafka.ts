import { createKafkaClient, kafkaAccessOf } from '@posthorn/platform/kafka/connect.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { kafkaAccess } from '@posthorn/platform/service/store-settings.ts';
import type { Kafka } from 'kafkajs';
import { z } from 'zod';
import type { Namespace } from '../process/namespace.ts';

/** A client of the tests; with TLS and a login where the namespace has them. */
export function openKafka(env: Namespace): Kafka {
  const access = kafkaAccessOf(z.object(kafkaAccess).parse(env));
  return createKafkaClient('posthorn-test', access, createLogger('test', 'silent'));
}
