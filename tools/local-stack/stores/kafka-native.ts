import { randomUUID, createHash } from 'node:crypto';
import { existsSync, mkdirSync, rmSync, writeFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { once } from 'node:events';
import { connect } from 'node:net';
import { patchKafkajs } from '@posthorn/platform/kafka/patches/patch-kafkajs.ts';
import { Kafka, logLevel, type Admin } from 'kafkajs';
import {
  ensurePrograms,
  JAVA,
  javaProgram,
  MAVEN,
  type RequiredProgram,
} from '../machine/required-programs.ts';
import { canConnect } from '../machine/ports.ts';
import { type Child, failOnExit } from '../processes/child.ts';
import { type Children, createChildren } from '../processes/children.ts';
import { type Log, waitUntil, settlesWithin } from '../waiting.ts';
import { cacheDir, cachedFolder } from '../machine/cache.ts';

interface NativeKafkaOptions {
  /** Has the data, the configuration and the log. A second start on the same folder continues with its data. */
  dir: string;
  port: number;
  controllerPort: number;
  log: Log;
  /** None unless given. */
  listeners?: readonly Listener[];
  properties?: Readonly<Record<string, string>>;
  /** Further arguments for formatting the storage. */
  formatArgs?: readonly string[];
  /** The cluster that the node belongs to, 22 characters of base64url; a new one unless given. */
  clusterId?: string;
}

export interface NativeKafka {
  brokers: string;
  pid: number;
  /** Controlled shutdown; takes about a second. */
  stop(): Promise<void>;
  /** Sends SIGKILL, to simulate a crash. */
  kill(): Promise<void>;
}

export function kafkaPrograms(): RequiredProgram[] {
  return hasKafkaJars() ? [JAVA] : [JAVA, MAVEN];
}

/** Starts a separate broker, for tests that stop or kill it. */
export async function startNativeKafka(options: NativeKafkaOptions): Promise<NativeKafka> {
  const children = createChildren(options.dir);
  await ensurePrograms(kafkaPrograms(), children, options.log);
  const child = await startKafka({ ...options, children, logPath: join(options.dir, 'kafka.log') });
  return {
    brokers: `127.0.0.1:${options.port}`,
    pid: child.pid,
    stop: () => child.stop(),
    kill: () => child.kill(),
  };
}

export async function startKafka(
  options: NativeKafkaOptions & { children: Children; logPath: string; name?: string },
): Promise<Child> {
  const { dir, port, children, log } = options;
  const jars = await ensureKafkaJars(children, log);
  const propertiesPath = join(dir, 'server.properties');
  const dataDir = join(dir, 'data');
  mkdirSync(dir, { recursive: true });
  writeFileSync(propertiesPath, serverProperties({ ...options, dataDir }));
  const { formatArgs = [], clusterId = newClusterId() } = options;
  await formatOnce({ dir, dataDir, jars, propertiesPath, formatArgs, clusterId, children });
  const child = children.start({
    name: options.name ?? 'kafka',
    command: javaProgram(),
    args: [...jvmFlags(jars), '-Xms128m', '-Xmx512m', 'kafka.Kafka', propertiesPath],
    port,
    logPath: options.logPath,
    stopTimeoutMs: 15_000,
  });
  await failOnExit(child, waitUntilReady(port));
  return child;
}

/** The serial garbage collector starts fastest and needs no threads of its own, which helps on a small machine. */
function jvmFlags(jars: string): string[] {
  const log = '-Dorg.slf4j.simpleLogger';
  return [
    '-XX:+UseSerialGC',
    '-Djava.awt.headless=true',
    `${log}.defaultLogLevel=warn`,
    `${log}.showDateTime=true`,
    `${log}.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSZ`,
    '-cp',
    join(jars, '*'),
  ];
}

interface StorageFolder {
  dir: string;
  dataDir: string;
  jars: string;
  propertiesPath: string;
  formatArgs: readonly string[];
  clusterId: string;
  children: Children;
}

export function newClusterId(): string {
  return Buffer.from(randomUUID().replaceAll('-', ''), 'hex').toString('base64url');
}

/** Formats the storage unless a marker file shows that it is complete. An interrupted format is started again. */
async function formatOnce({
  dir,
  dataDir,
  jars,
  propertiesPath,
  formatArgs,
  clusterId,
  children,
}: StorageFolder): Promise<void> {
  const markerPath = join(dir, 'formatted');
  if (existsSync(markerPath)) return;
  rmSync(dataDir, { recursive: true, force: true });
  // One argument: one id in 64 begins with a dash, and a separate one would be parsed as an option.
  const id = `--cluster-id=${clusterId}`;
  const tool = ['kafka.tools.StorageTool', 'format', id, '-c', propertiesPath, ...formatArgs];
  await children.run({
    name: 'Formatting the Kafka storage',
    command: javaProgram(),
    args: [...jvmFlags(jars), '-XX:TieredStopAtLevel=1', ...tool],
  });
  writeFileSync(markerPath, clusterId);
}

async function waitUntilReady(port: number): Promise<void> {
  const poll = { timeoutMs: 60_000, intervalMs: 100 };
  await waitUntil({ what: `Kafka to listen on port ${port}`, ...poll }, () =>
    canConnect('127.0.0.1', port),
  );
  await waitUntil({ what: `a reply from Kafka on port ${port}`, ...poll }, () =>
    isKafkaReady(`127.0.0.1:${port}`),
  );
}

const POM = join(import.meta.dirname, 'kafka-pom.xml');

/** Contains a hash of pom.xml, so that another version gets another folder. */
function folderName(): string {
  const fingerprint = createHash('sha256').update(readFileSync(POM)).digest('hex').slice(0, 12);
  return `kafka-${fingerprint}`;
}

function hasKafkaJars(): boolean {
  return existsSync(join(cacheDir(), folderName()));
}

/** Returns the folder with Kafka and its dependencies (45 jars, 43 MB). Downloads them if it does not exist. */
async function ensureKafkaJars(children: Children, log: Log): Promise<string> {
  return cachedFolder(folderName(), async (folder) => {
    log('Downloading Kafka with mvn (43 MB, once per user)');
    const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime'];
    await children.run({
      name: 'Downloading Kafka with mvn',
      command: 'mvn',
      args: ['-B', '-q', '-f', POM, ...goal, `-DoutputDirectory=${folder}`],
    });
  });
}

/** A listener beside the plaintext one. */
interface Listener {
  /** Upper-case letters. */
  name: string;
  port: number;
  protocol: 'SSL' | 'SASL_SSL';
}

interface KafkaServerOptions {
  dataDir: string;
  port: number;
  controllerPort: number;
  /** Reached as localhost, the name in its certificate. */
  listeners?: readonly Listener[];
  /** Further properties by name. */
  properties?: Readonly<Record<string, string>>;
}

/** Returns server.properties of a single node that is broker and controller. All replication factors are 1. */
export function serverProperties({
  dataDir,
  port,
  controllerPort,
  listeners = [],
  properties: further = {},
}: KafkaServerOptions): string {
  const others = (host: string): string[] =>
    listeners.map((listener) => `${listener.name}://${host}:${listener.port}`);
  const protocols = listeners.map(({ name, protocol }) => `${name}:${protocol}`);
  const properties = {
    'process.roles': 'broker,controller',
    'node.id': 1,
    // A static voter: a voter stored in the data would fix the ports.
    'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
    listeners: [
      `PLAINTEXT://127.0.0.1:${port}`,
      `CONTROLLER://127.0.0.1:${controllerPort}`,
      ...others('127.0.0.1'),
    ].join(),
    'advertised.listeners': [`PLAINTEXT://127.0.0.1:${port}`, ...others('localhost')].join(),
    'listener.security.protocol.map': [
      'PLAINTEXT:PLAINTEXT',
      'CONTROLLER:PLAINTEXT',
      ...protocols,
    ].join(),
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'PLAINTEXT',
    'log.dirs': dataDir,
    'auto.create.topics.enable': false,
    'offsets.topic.replication.factor': 1,
    // Default 50. On one node, more partitions only cost start-up time and open files.
    'offsets.topic.num.partitions': 4,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'share.coordinator.state.topic.replication.factor': 1,
    'share.coordinator.state.topic.min.isr': 1,
    // Default 9 s. After a crash the controller rejects the new broker as a duplicate until this time has passed.
    'broker.session.timeout.ms': 5_000,
    'broker.heartbeat.interval.ms': 500,
    // Default 3 s, to wait for more members of a new group. Here all members join at once.
    'group.initial.rebalance.delay.ms': 0,
    ...further,
  };
  return Object.entries(properties)
    .map(([name, value]) => `${name}=${String(value)}\n`)
    .join('');
}

/** Returns the properties in which a broker with id 2 differs that joins the cluster of a single node. */
export function secondBroker(ports: {
  port: number;
  controllerPort: number;
}): Record<string, string> {
  return {
    'process.roles': 'broker',
    'node.id': '2',
    'controller.quorum.voters': `1@127.0.0.1:${ports.controllerPort}`,
    listeners: `PLAINTEXT://127.0.0.1:${ports.port}`,
  };
}

/**
 * Returns whether the cluster serves requests. An open port is not enough: a starting broker accepts connections and
 * does not respond.
 */
export async function isKafkaReady(brokers: string): Promise<boolean> {
  const admin = createLocalAdmin(brokers);
  try {
    await admin.connect();
    const cluster = await admin.describeCluster();
    return cluster.brokers.length > 0 && cluster.controller !== null;
  } catch {
    return false;
  } finally {
    await admin.disconnect();
  }
}

const LEAVE_GROUP = 13;
const CORRELATION_ID = 1;

/**
 * Removes all members of all groups from a broker that was just started. If members were killed with it, the broker waits
 * a whole session timeout (20 s) for them. A member that is still alive joins again. kafkajs does not export the
 * LeaveGroup request, so it is encoded here. If it fails, consumers only wait those 20 s.
 */
export async function removeStaleMembers(port: number): Promise<void> {
  await waitUntil({ what: 'Kafka to load the consumer groups', timeoutMs: 10_000 }, () =>
    removeMembers(port).then(
      () => true,
      () => false,
    ),
  );
}

/** Rejects while the broker is loading its groups. */
async function removeMembers(port: number): Promise<void> {
  for (const { groupId, memberIds } of await groupsWithMembers(port)) {
    for (const memberId of memberIds) await send(port, leaveGroupRequest(groupId, memberId));
  }
}

async function groupsWithMembers(
  port: number,
): Promise<{ groupId: string; memberIds: string[] }[]> {
  const admin = createLocalAdmin(`127.0.0.1:${port}`);
  try {
    await admin.connect();
    const { groups } = await admin.listGroups();
    if (groups.length === 0) return [];
    const described = await admin.describeGroups(groups.map(({ groupId }) => groupId));
    return described.groups.map(({ groupId, members }) => ({
      groupId,
      memberIds: members.map(({ memberId }) => memberId),
    }));
  } finally {
    await admin.disconnect();
  }
}

/** Encodes LeaveGroup version 0: size, API key, version, correlation id, client id, group id, member id. */
export function leaveGroupRequest(groupId: string, memberId: string): Buffer {
  const header = Buffer.alloc(8);
  header.writeInt16BE(LEAVE_GROUP, 0);
  header.writeInt16BE(0, 2);
  header.writeInt32BE(CORRELATION_ID, 4);
  const body = Buffer.concat([
    header,
    ...['posthorn-local-stack', groupId, memberId].map(withLengthPrefix),
  ]);
  const size = Buffer.alloc(4);
  size.writeInt32BE(body.length);
  return Buffer.concat([size, body]);
}

function withLengthPrefix(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(2);
  length.writeInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

async function send(port: number, request: Buffer): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.write(request);
  await settlesWithin(once(socket, 'data'), 2_000);
  socket.destroy();
}

/** Returns an admin client that does not retry and does not log. The caller connects and disconnects it. */
export function createLocalAdmin(brokers: string): Admin {
  patchKafkajs();
  return new Kafka({
    clientId: 'posthorn-local-stack',
    brokers: brokers.split(',').map((broker) => broker.trim()),
    logLevel: logLevel.NOTHING,
    connectionTimeout: 2_000,
    requestTimeout: 3_000,
    retry: { retries: 0 },
  }).admin();
}
