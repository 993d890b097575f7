import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kafkaAnswers } from '../kafka/answers.ts';
import { hasKafkaJars, provideKafkaJars } from '../kafka/jars.ts';
import { serverProperties } from '../kafka/server-properties.ts';
import { provideParts } from '../machine/install.ts';
import { JAVA, javaProgram, MAVEN, type Part } from '../machine/parts.ts';
import { canConnect } from '../machine/ports.ts';
import { type Child, orItsDeath } from '../processes/child.ts';
import { type Children, createChildren } from '../processes/children.ts';
import { type Log, until } from '../waiting.ts';

export interface NativeKafkaPlace {
  /** Data, configuration and log; starting again on the same folder continues with the same data. */
  dir: string;
  port: number;
  controllerPort: number;
  log: Log;
}

export interface NativeKafka {
  brokers: string;
  pid: number;
  /** Controlled shutdown, about a second. */
  stop(): Promise<void>;
  /** SIGKILL, as a crash would be. */
  kill(): Promise<void>;
}

export function kafkaParts(): Part[] {
  return hasKafkaJars() ? [JAVA] : [JAVA, MAVEN];
}

/** A broker of its own, for tests that stop it or kill it. */
export async function startNativeKafka(place: NativeKafkaPlace): Promise<NativeKafka> {
  const children = createChildren(place.dir);
  await provideParts(kafkaParts(), children, place.log);
  const child = await startKafka({ ...place, children, logPath: join(place.dir, 'kafka.log') });
  return {
    brokers: `127.0.0.1:${place.port}`,
    pid: child.pid,
    stop: () => child.stop(),
    kill: () => child.kill(),
  };
}

export async function startKafka(
  options: NativeKafkaPlace & { children: Children; logPath: string },
): Promise<Child> {
  const { dir, port, controllerPort, children, log } = options;
  const jars = await provideKafkaJars(children, log);
  const propertiesPath = join(dir, 'server.properties');
  const dataDir = join(dir, 'data');
  mkdirSync(dir, { recursive: true });
  writeFileSync(propertiesPath, serverProperties({ dataDir, port, controllerPort }));
  await formatOnce({ dir, dataDir, jars, propertiesPath, children });
  const child = children.start({
    name: 'kafka',
    command: javaProgram(),
    args: [...jvmFlags(jars), '-Xms128m', '-Xmx512m', 'kafka.Kafka', propertiesPath],
    port,
    logPath: options.logPath,
    stopTimeoutMs: 15_000,
  });
  await orItsDeath(child, answering(port));
  return child;
}

/** The serial collector starts fastest and takes no threads from the services on a small machine. */
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

interface Format {
  dir: string;
  dataDir: string;
  jars: string;
  propertiesPath: string;
  children: Children;
}

/** The mark is written when the tool is done: without it what lies there is half a format and is made again. */
async function formatOnce({ dir, dataDir, jars, propertiesPath, children }: Format): Promise<void> {
  const mark = join(dir, 'formatted');
  if (existsSync(mark)) return;
  rmSync(dataDir, { recursive: true, force: true });
  const clusterId = Buffer.from(randomUUID().replaceAll('-', ''), 'hex').toString('base64url');
  // In one word: one id in 64 begins with a dash and would be taken for an option.
  const id = `--cluster-id=${clusterId}`;
  const tool = ['kafka.tools.StorageTool', 'format', id, '-c', propertiesPath];
  await children.run({
    name: 'Formatting the storage of Kafka',
    command: javaProgram(),
    args: [...jvmFlags(jars), '-XX:TieredStopAtLevel=1', ...tool],
  });
  writeFileSync(mark, clusterId);
}

async function answering(port: number): Promise<void> {
  const poll = { timeoutMs: 60_000, intervalMs: 100 };
  await until({ what: `Kafka listening on port ${port}`, ...poll }, () =>
    canConnect('127.0.0.1', port),
  );
  await until({ what: `An answer of Kafka on port ${port}`, ...poll }, () =>
    kafkaAnswers(`127.0.0.1:${port}`),
  );
}
