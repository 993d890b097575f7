import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isKafkaReady } from '../kafka/readiness.ts';
import { hasKafkaJars, ensureKafkaJars } from '../kafka/jars.ts';
import { type Listener, serverProperties } from '../kafka/server-properties.ts';
import { ensurePrograms } from '../machine/install-programs.ts';
import { JAVA, javaProgram, MAVEN, type RequiredProgram } from '../machine/required-programs.ts';
import { canConnect } from '../machine/ports.ts';
import { type Child, failOnExit } from '../processes/child.ts';
import { type Children, createChildren } from '../processes/children.ts';
import { type Log, waitUntil } from '../waiting.ts';

export interface NativeKafkaOptions {
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
