import { connectProducer } from '@posthorn/platform/kafka/producer.ts';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { kafkaAccessOf, type KafkaAccess } from '@posthorn/platform/kafka/connect.ts';
import { createKafkaClient } from '@posthorn/platform/kafka/connect.ts';
import { toDeadLetter } from '@posthorn/platform/records/dead-letters.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { kafkaAccess } from '@posthorn/platform/service/store-settings.ts';
import { z } from 'zod';
import { takeStep } from '../../../deploy/setup/run-setup.ts';
import { CREATE_INDEXES, CREATE_TOPICS } from '../../../deploy/setup/steps.ts';
import { newEncryptionKey } from '../../../deploy/setup/create-encryption-keys.ts';
import { createNamespace } from '../../support/process/namespace.ts';
import { ADMIN, createServices, LOCAL, type OwnCompany } from '../../support/process/posthorn.ts';
import { runProgram } from '../../support/process/service-process.ts';
import { setUp } from '../../support/process/setup.ts';
import {
  addPartitionsMay,
  deadLettersReadMay,
  deadLettersReplayMay,
  PASSWORD,
  servicesMay,
  setupMay,
  startSecuredKafka,
  topicsApplyMay,
  USER,
  type AclRule,
  type SecuredKafka,
} from '../../support/stores/secured-kafka.ts';

const PREFIX = `secured-${randomUUID().slice(0, 8)}.`;
const RETRY_DELAYS = '200ms';

let kafka: SecuredKafka;

beforeAll(async () => {
  kafka = await startSecuredKafka();
  await kafka.allow(`User:${USER}`, servicesMay(PREFIX));
  await kafka.allow('User:CN=posthorn-mtls', setupMay(PREFIX));
  await takeStep(CREATE_TOPICS, {
    ...LOCAL,
    ...mutual(),
    TOPIC_PREFIX: PREFIX,
    RETRY_DELAYS,
  });
}, 180_000);

afterAll(() => kafka.stop());

function mutual(): Record<string, string> {
  return {
    KAFKA_BROKERS: kafka.mutual,
    KAFKA_SSL: 'true',
    KAFKA_SSL_CA_FILE: kafka.caFile,
    KAFKA_SSL_CERT_FILE: kafka.certFile,
    KAFKA_SSL_KEY_FILE: kafka.keyFile,
  };
}

/** With the certificate in place of the login that the environment has. */
const withoutLogin = (): Record<string, string> => ({
  ...mutual(),
  KAFKA_SASL_MECHANISM: '',
  KAFKA_SASL_USERNAME: '',
  KAFKA_SASL_PASSWORD: '',
});

function login(mechanism: string): Record<string, string> {
  const tls = {
    KAFKA_BROKERS: kafka.secured,
    KAFKA_SSL: 'true',
    KAFKA_SSL_CA_FILE: kafka.caFile,
    KAFKA_SASL_MECHANISM: mechanism,
  };
  return mechanism === 'oauthbearer'
    ? { ...tls, KAFKA_SASL_TOKEN_FILE: kafka.tokenFile }
    : { ...tls, KAFKA_SASL_USERNAME: USER, KAFKA_SASL_PASSWORD: PASSWORD };
}

const accessOf = (env: Record<string, string>): KafkaAccess =>
  kafkaAccessOf(z.object(kafkaAccess).parse(env));

const RECORD: OutgoingRecord = {
  topic: `${PREFIX}dead-letters`,
  key: 'k',
  value: Buffer.from('v'),
};

/** Publishes a record. Rejects when the broker refuses it. */
async function publish(access: KafkaAccess, record = RECORD): Promise<void> {
  const logger = createLogger('test', 'silent');
  const producer = await connectProducer(createKafkaClient('posthorn-test', access, logger));
  try {
    await producer.send([record]);
  } finally {
    await producer.close();
  }
}

describe('A client', () => {
  it.each(['PLAIN', 'scram-sha-256', 'scram-sha-512', 'oauthbearer'])(
    'logs in with %s over TLS',
    async (mechanism) => {
      await publish(accessOf(login(mechanism)));
    },
  );

  it('does not send its password to a broker whose certificate it does not trust', async () => {
    const untrusting = { ...login('plain'), KAFKA_SSL_CA_FILE: kafka.certFile };
    await expect(publish(accessOf(untrusting))).rejects.toThrow();
  });
});

describe('A client with a certificate', () => {
  it('may not publish without an ACL', async () => {
    await expect(publish(accessOf(mutual()))).rejects.toThrow();
  });

  it('may publish with one', async () => {
    await kafka.allow('User:CN=posthorn-mtls', withoutConfigs(servicesMay(PREFIX)));
    await publish(accessOf(mutual()));
  });
});

/** The rights of a version that did not look at the settings of topics. */
const withoutConfigs = (rules: readonly AclRule[]): AclRule[] =>
  rules.map((rule) => ({
    ...rule,
    operations: rule.operations.filter((operation) => operation !== 'DESCRIBE_CONFIGS'),
  }));

describe('Topics behind TLS and ACLs [security]', () => {
  const prefix = `more-${PREFIX}`;
  const user = 'User:CN=posthorn-mtls';

  it('get more partitions with the rights of the list of ACLs alone', async () => {
    const env = { ...LOCAL, ...mutual(), TOPIC_PREFIX: prefix, RETRY_DELAYS };
    const addPartitions = () =>
      runProgram('deploy/setup/add-partitions.ts', [], { ...env, TOPIC_PARTITIONS: '8' });
    await kafka.allow(user, setupMay(prefix));
    await takeStep(CREATE_TOPICS, env);
    await expect(addPartitions()).rejects.toThrow(/not authorized/i);
    await kafka.allow(user, addPartitionsMay(prefix));
    expect(await addPartitions()).toContain('13 topics with 8 partitions, 13 of them raised');
  });
});

describe('Dead letters behind TLS and ACLs [security]', () => {
  const prefix = `letters-${PREFIX}`;
  const operator = 'User:CN=posthorn-mtls';
  const shared = { ...createNamespace(), ...LOCAL, TOPIC_PREFIX: prefix, RETRY_DELAYS };

  const admin = (...args: string[]) =>
    runProgram(ADMIN, ['dead-letters', ...args], { ...shared, ...withoutLogin() });

  beforeAll(async () => {
    const services = login('scram-sha-512');
    await kafka.allow(`User:${USER}`, [...setupMay(prefix), ...servicesMay(prefix)]);
    await takeStep(CREATE_TOPICS, { ...shared, ...services });
    await takeStep(CREATE_INDEXES, { ...shared, ...services });
    const read = {
      topic: `${prefix}message-created`,
      partition: 0,
      offset: 0,
      key: 'k',
      value: Buffer.from('unreadable'),
      headers: {},
      timestampMs: 0,
      isInherited: false,
      ownedSinceMs: 0,
      stored: { key: null, value: null, headers: {} },
    };
    const letter = toDeadLetter(`${prefix}dead-letters`, read, 'unreadable_record', 'no JSON');
    await publish(accessOf(services), letter);
  }, 120_000);

  it('are listed and shown with the rights of the list of ACLs alone', async () => {
    // A topic that it may not describe is not there for it.
    await expect(admin('list')).rejects.toThrow(/Kafka has no topic letters-/);
    await kafka.allow(operator, deadLettersReadMay(prefix));
    const { letters } = JSON.parse(await admin('list', '--json')) as { letters: { id: string }[] };
    expect(letters).toMatchObject([{ reason: 'unreadable_record' }]);
    expect(await admin('show', letters[0]?.id ?? '')).toContain('no JSON');
  });

  it('are replayed with the rights of the list of ACLs alone', async () => {
    await kafka.allow(operator, deadLettersReadMay(prefix));
    await expect(admin('replay', '--all')).rejects.toThrow(/not authorized/i);
    await kafka.allow(operator, deadLettersReplayMay(prefix));
    expect(JSON.parse(await admin('replay', '--all', '--json'))).toMatchObject({ republished: 1 });
  });
});

describe('A service behind TLS, SCRAM and ACLs [security]', () => {
  let services: Pick<OwnCompany, 'start' | 'stop'>;
  let env: Record<string, string>;

  beforeAll(async () => {
    env = {
      ...createNamespace(),
      ...LOCAL,
      ...login('scram-sha-512'),
      TOPIC_PREFIX: PREFIX,
      RETRY_DELAYS,
      ENCRYPTION_KEYS: newEncryptionKey(),
    };
    await setUp({ env, company: 'Test', isNew: true });
    services = createServices(() => env);
  }, 180_000);

  afterAll(() => services.stop());

  it('starts with a warning where it may not read the settings of topics', async () => {
    const warned = await services.start('retry', withoutLogin());
    expect(warned.output()).toContain('cannot check the settings of the topics');
    const allowed = await services.start('retry');
    expect(allowed.output()).not.toContain('settings of the topics');
  });

  it('sets topics for an operator with the rights of the list of ACLs alone', async () => {
    await kafka.allow('User:CN=posthorn-mtls', topicsApplyMay(PREFIX));
    const asOperator = { ...env, ...withoutLogin() };
    const applied = await runProgram(ADMIN, ['topics', 'apply'], asOperator);
    expect(applied).toContain('0 settings of 0 topics written');
    expect(await runProgram(ADMIN, ['topics', 'check'], asOperator)).toContain(', 0 differences');
  });

  it('does not start with a wrong password, and does not print it', async () => {
    const wrong = { KAFKA_SASL_PASSWORD: 'hush-wrong' };
    const start = services.start('retry', wrong);
    await expect(start).rejects.toThrow(/Kafka cannot be used at localhost/);
    await expect(start).rejects.not.toThrow(/hush-wrong/);
  });
});
