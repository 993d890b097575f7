import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKafkaClient } from '@posthorn/platform/kafka/connect.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import kafkajs from 'kafkajs';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import {
  startNativeKafka,
  type NativeKafka,
} from '../../../tools/local-stack/stores/kafka-native.ts';
import { selfSigned } from '../receivers/self-signed.ts';
import { eventually } from '../time/eventually.ts';
import { KAFKA_PASSWORD, KAFKA_SETUP_USER, KAFKA_USER, TESTS } from '../process/secured-logins.ts';

export { KAFKA_PASSWORD as PASSWORD, KAFKA_USER as USER } from '../process/secured-logins.ts';
const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = kafkajs;
/** The name in our certificate; its principal is `User:CN=posthorn-mtls`. */
const CLIENT_NAME = 'posthorn-mtls';

/** A broker with ACLs: everything is refused that they do not allow. */
export interface SecuredKafka {
  dir: string;
  /** Of the plaintext listener, where everybody may do everything. */
  plaintext: string;
  /** TLS and a login. */
  secured: string;
  /** TLS with a certificate of the client. */
  mutual: string;
  caFile: string;
  certFile: string;
  keyFile: string;
  tokenFile: string;
  /** Allows the principals of the client what docs/security.md lists. */
  allow: (principal: string, rules: readonly AclRule[]) => Promise<void>;
  stop: () => Promise<void>;
}

/** What docs/security.md lists for the services, and for create-topics. */
export const servicesMay = (prefix: string): AclRule[] => [
  { resource: 'topic', prefix, operations: ['READ', 'WRITE', 'DESCRIBE', 'DESCRIBE_CONFIGS'] },
  { resource: 'group', prefix, operations: ['READ', 'DESCRIBE'] },
];
/** What it lists for the command of operators that sets topics. */
export const topicsApplyMay = (prefix: string): AclRule[] => [
  { resource: 'topic', prefix, operations: ['DESCRIBE', 'DESCRIBE_CONFIGS', 'ALTER_CONFIGS'] },
];
/** What it lists for add-partitions. */
export const addPartitionsMay = (prefix: string): AclRule[] => [
  { resource: 'topic', prefix, operations: ['ALTER', 'DESCRIBE'] },
  { resource: 'group', prefix, operations: ['READ', 'DESCRIBE'] },
];
/** What it lists for the commands that show dead letters. */
export const deadLettersReadMay = (prefix: string): AclRule[] => [
  { resource: 'topic', prefix, operations: ['READ', 'DESCRIBE'] },
  { resource: 'group', prefix, operations: ['READ'] },
];
/** What it lists for the command that replays them. */
export const deadLettersReplayMay = (prefix: string): AclRule[] => [
  { resource: 'topic', prefix, operations: ['READ', 'WRITE', 'DESCRIBE'] },
  { resource: 'group', prefix, operations: ['READ'] },
];
export const setupMay = (prefix: string): AclRule[] => [
  { resource: 'topic', prefix, operations: ['CREATE', 'DESCRIBE'] },
];

export interface AclRule {
  resource: 'topic' | 'group' | 'cluster';
  /** A prefix; of a cluster its name. */
  prefix: string;
  operations: readonly (keyof typeof AclOperationTypes)[];
}

export async function startSecuredKafka(): Promise<SecuredKafka> {
  const [port = 0, controllerPort = 0, securedPort = 0, mutualPort = 0] = await freePorts(4);
  const dir = mkdtempSync(join(tmpdir(), 'posthorn-secured-kafka-'));
  const files = writeFiles(dir);
  const kafka = await startNativeKafka({
    dir: join(dir, 'kafka'),
    port,
    controllerPort,
    log: () => undefined,
    listeners: [
      { name: 'SECURED', port: securedPort, protocol: 'SASL_SSL' },
      { name: 'MUTUAL', port: mutualPort, protocol: 'SSL' },
    ],
    properties: propertiesOf(files),
    formatArgs: [KAFKA_USER, KAFKA_SETUP_USER, TESTS].flatMap((user) =>
      ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap((mechanism) => [
        '--add-scram',
        `${mechanism}=[name=${user},password=${KAFKA_PASSWORD}]`,
      ]),
    ),
  });
  return {
    dir,
    plaintext: kafka.brokers,
    secured: `localhost:${securedPort}`,
    mutual: `localhost:${mutualPort}`,
    ...files,
    allow: (principal, rules) => allow(kafka, principal, rules),
    async stop() {
      await kafka.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function writeFiles(dir: string) {
  const server = selfSigned('localhost');
  const client = selfSigned(CLIENT_NAME);
  const write = (name: string, text: string): string => {
    const path = join(dir, name);
    writeFileSync(path, text);
    return path;
  };
  return {
    serverFile: write('server.pem', server.key + server.cert),
    trustFile: write('trusted.pem', client.cert),
    caFile: write('ca.pem', server.cert),
    certFile: write('client.pem', client.cert),
    keyFile: write('client-key.pem', client.key),
    tokenFile: write('token', unsecuredToken(KAFKA_USER)),
  };
}

/** A token of the form that brokers accept without an issuer, in tests only (RFC 7515, appendix A.5). */
function unsecuredToken(subject: string): string {
  const nowS = Math.floor(Date.now() / 1_000);
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
  return `${encode({ alg: 'none' })}.${encode({ sub: subject, iat: nowS, exp: nowS + 3_600 })}.`;
}

function propertiesOf({ serverFile, trustFile }: ReturnType<typeof writeFiles>) {
  const login = 'listener.name.secured';
  const module = 'org.apache.kafka.common.security';
  return {
    'ssl.keystore.type': 'PEM',
    'ssl.keystore.location': serverFile,
    'ssl.truststore.type': 'PEM',
    'ssl.truststore.location': trustFile,
    'listener.name.mutual.ssl.client.auth': 'required',
    'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER',
    [`${login}.plain.sasl.jaas.config`]: `${module}.plain.PlainLoginModule required user_${KAFKA_USER}="${KAFKA_PASSWORD}";`,
    [`${login}.scram-sha-256.sasl.jaas.config`]: `${module}.scram.ScramLoginModule required;`,
    [`${login}.scram-sha-512.sasl.jaas.config`]: `${module}.scram.ScramLoginModule required;`,
    [`${login}.oauthbearer.sasl.jaas.config`]: `${module}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`,
    'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
    'super.users': `User:ANONYMOUS;User:${TESTS}`,
  };
}

const RESOURCES = {
  topic: AclResourceTypes.TOPIC,
  group: AclResourceTypes.GROUP,
  cluster: AclResourceTypes.CLUSTER,
};

async function allow(
  { brokers }: NativeKafka,
  principal: string,
  rules: readonly AclRule[],
): Promise<void> {
  const logger = createLogger('test', 'silent');
  const admin = createKafkaClient('posthorn-test', { brokers: [brokers] }, logger).admin();
  const acl = rules.flatMap(({ resource, prefix, operations }) =>
    operations.map((operation) => ({
      resourceType: RESOURCES[resource],
      resourceName: prefix,
      resourcePatternType:
        resource === 'cluster' ? ResourcePatternTypes.LITERAL : ResourcePatternTypes.PREFIXED,
      principal,
      host: '*',
      operation: AclOperationTypes[operation],
      permissionType: AclPermissionTypes.ALLOW,
    })),
  );
  await admin.connect();
  try {
    await admin.createAcls({ acl });
    // The controller has them. The broker follows it.
    await eventually('the broker knows every rule', async () => {
      const found = await Promise.all(acl.map((each) => admin.describeAcls(each)));
      return found.every(({ resources }) => resources.length > 0);
    });
  } finally {
    await admin.disconnect();
  }
}
