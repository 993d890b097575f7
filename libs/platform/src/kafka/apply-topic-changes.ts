import {
  Admin,
  ConfigResourceTypes,
  type ConnectionOptions,
  IncrementalAlterConfigOperationTypes,
  SASLMechanisms,
  type SASLOptions,
} from '@platformatic/kafka';
import type { TopicChange } from '@posthorn/domain/records/topic-drift.ts';
import { messageOf } from '../service/errors.ts';
import type { KafkaAccess, Sasl } from './connect.ts';

export interface ApplyOptions {
  /** Kafka only checks the changes and this user's right to them. */
  isDryRun: boolean;
}

/**
 * Writes settings of topics; others keep their values. kafkajs has only the request that replaces all settings of a
 * topic, which would undo the changes that another tool makes at the same time, so this one request goes through
 * `@platformatic/kafka`. Throws with Kafka's reason when it refuses a change.
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

type SecurityOptions = Pick<ConnectionOptions, 'tls' | 'tlsServerName' | 'sasl'>;

function securityOf({ tls, sasl }: KafkaAccess): SecurityOptions {
  return {
    ...(tls && { tls: { secureContext: tls }, tlsServerName: true }),
    ...(sasl && { sasl: loginOf(sasl) }),
  };
}

const MECHANISMS = {
  plain: SASLMechanisms.PLAIN,
  'scram-sha-256': SASLMechanisms.SCRAM_SHA_256,
  'scram-sha-512': SASLMechanisms.SCRAM_SHA_512,
} as const;

function loginOf(sasl: Sasl): SASLOptions {
  if (sasl.mechanism === 'oauthbearer') {
    return { mechanism: SASLMechanisms.OAUTHBEARER, token: sasl.readToken };
  }
  const { mechanism, username, password } = sasl;
  return { mechanism: MECHANISMS[mechanism], username, password };
}

/** Returns the messages of an error on one line: the client wraps the errors of a broker in another error. */
function errorText(error: unknown): string {
  const inner = error instanceof AggregateError ? error.errors.map(errorText) : [];
  return [messageOf(error), ...inner].join(' ');
}
