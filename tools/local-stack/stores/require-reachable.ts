import { mongodbUrl, redisUrl } from '@posthorn/platform/service/stores/store-urls.ts';
import { isKafkaReady } from '../kafka/readiness.ts';
import type { Addresses } from '../settings.ts';
import { StackError } from '../stack-error.ts';
import { settlesWithin } from '../waiting.ts';
import { canConnect } from '../machine/ports.ts';

interface HostAndPort {
  host: string;
  port: number;
}

/** Connects to the given addresses. Throws with a list of all that cannot be used. */
export async function requireReachable(given: Partial<Addresses>): Promise<void> {
  // First: of a URL with an unencoded password, what looks like the host is a part of the password.
  const wrong = [
    ...problemsOf('MONGODB_URL', mongodbUrl.safeParse(given.mongodbUrl ?? 'mongodb://unused')),
    ...problemsOf('REDIS_URL', redisUrl.safeParse(given.redisUrl ?? 'redis://unused')),
  ];
  if (wrong.length > 0) throw new StackError(wrong.join('\n'));
  const problems = await Promise.all([
    problemOf('KAFKA_BROKERS', given.kafkaBrokers, parseBrokers, isKafkaReady),
    problemOf('MONGODB_URL', given.mongodbUrl, (url) => parseUrl(url, 27_017)),
    problemOf('REDIS_URL', given.redisUrl, (url) => parseUrl(url, 6_379)),
  ]);
  const lines = problems.filter((problem) => problem !== undefined);
  if (lines.length > 0) throw new StackError(lines.join('\n'));
}

function problemsOf(variable: string, { error }: ReturnType<typeof redisUrl.safeParse>): string[] {
  return error?.issues.map(({ message }) => `${variable} ${message}. ${HOW_TO_FIX}`) ?? [];
}

async function problemOf(
  variable: string,
  value: string | undefined,
  parse: (value: string) => HostAndPort[],
  isReady: (value: string) => Promise<boolean> = () => Promise.resolve(true),
): Promise<string | undefined> {
  if (value === undefined) return undefined;
  const hosts = parse(value);
  if (hosts.length === 0) return `${variable} contains no address. ${HOW_TO_FIX}`;
  // Only host and port are shown: a URL may contain a password.
  const shown = hosts.map(({ host, port }) => `${host}:${port}`).join(', ');
  if (!(await canReachOne(hosts))) {
    return `Cannot connect to ${shown} (${variable}). ${HOW_TO_FIX}`;
  }
  const ready = isReady(value);
  const isUsable = (await settlesWithin(ready, 5_000)) && (await ready);
  return isUsable ? undefined : `No valid reply from ${shown} (${variable}). ${HOW_TO_FIX}`;
}

const HOW_TO_FIX =
  'Correct the variable in the environment of this command, or unset it to start a local one.';

async function canReachOne(hosts: readonly HostAndPort[]): Promise<boolean> {
  const tries = await Promise.all(hosts.map(({ host, port }) => canConnect(host, port, 4_000)));
  return tries.includes(true);
}

export function parseBrokers(brokers: string): HostAndPort[] {
  return brokers.split(',').flatMap((broker) => parseHostAndPort(broker.trim(), 9_092));
}

/** Returns the hosts of a URL; a MongoDB URL may have several. */
export function parseUrl(url: string, defaultPort: number): HostAndPort[] {
  const authority = /^[a-z+]+:\/\/(?:[^/@]*@)?([^/?]+)/.exec(url)?.[1] ?? '';
  return authority.split(',').flatMap((host) => parseHostAndPort(host, defaultPort));
}

function parseHostAndPort(text: string, defaultPort: number): HostAndPort[] {
  const parts = /^(\[[^\]]+\]|[^:\s]+)(?::(\d+))?$/.exec(text);
  if (parts?.[1] === undefined) return [];
  return [{ host: parts[1].replace(/^\[|\]$/g, ''), port: Number(parts[2] ?? defaultPort) }];
}
