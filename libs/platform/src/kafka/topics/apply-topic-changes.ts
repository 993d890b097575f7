import {
  Admin,
  ConfigResourceTypes,
  IncrementalAlterConfigOperationTypes,
} from '@platformatic/kafka';
import type { TopicChange } from '@posthorn/domain/records/plan-topic-changes.ts';
import type { KafkaAccess } from '../connection/access.ts';
import { securityOf } from '../platformatic/connection-options.ts';
import { errorText } from '../platformatic/error-text.ts';

export interface ApplyOptions {
  /** Kafka checks the changes and this user's right to them, and makes none. */
  isDryRun: boolean;
}

/**
 * Writes settings of topics; others keep their values. kafkajs could only write all settings of a topic at once
 * and would undo what somebody changes at the same time. Throws what Kafka refused.
 */
export async function applyTopicChanges(
  access: KafkaAccess,
  changes: readonly TopicChange[],
  { isDryRun }: ApplyOptions,
): Promise<void> {
  if (changes.length === 0) return;
  const admin = new Admin({
    clientId: 'posthorn-admin',
    bootstrapBrokers: access.brokers,
    ...securityOf(access),
    connectTimeout: 3_000,
    requestTimeout: 10_000,
    // The operator is there to repeat the command.
    retries: 0,
  });
  try {
    await admin.incrementalAlterConfigs({
      validateOnly: isDryRun,
      resources: changes.map(({ topic, settings }) => ({
        resourceType: ConfigResourceTypes.TOPIC,
        resourceName: topic,
        configs: Object.entries(settings).map(([name, value]) => ({
          name,
          configOperation: IncrementalAlterConfigOperationTypes.SET,
          value,
        })),
      })),
    });
  } catch (error) {
    throw new Error(`Kafka refused the settings of topics: ${errorText(error)}`, { cause: error });
  } finally {
    await admin.close();
  }
}
