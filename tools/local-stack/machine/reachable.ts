import { kafkaAnswers } from '../kafka/answers.ts';
import type { Addresses } from '../settings.ts';
import { StackError } from '../stack-error.ts';
import { settlesWithin } from '../waiting.ts';
import { canConnect } from './ports.ts';

interface Endpoint {
  host: string;
  port: number;
}

/** Given addresses are tried before anything is started: one message names all that cannot be reached. */
export async function requireReachable(given: Partial<Addresses>): Promise<void> {
  const problems = await Promise.all([
    problemOf('KAFKA_BROKERS', given.kafkaBrokers, parseBrokers, kafkaAnswers),
    problemOf('MONGODB_URL', given.mongodbUrl, (url) => parseUrl(url, 27_017)),
    problemOf('REDIS_URL', given.redisUrl, (url) => parseUrl(url, 6_379)),
  ]);
  const lines = problems.filter((problem) => problem !== undefined);
  if (lines.length > 0) throw new StackError(lines.join('\n'));
}

async function problemOf(
  variable: string,
  value: string | undefined,
  parse: (value: string) => Endpoint[],
  answers: (value: string) => Promise<boolean> = () => Promise.resolve(true),
): Promise<string | undefined> {
  if (value === undefined) return undefined;
  const endpoints = parse(value);
  if (endpoints.length === 0) return `${variable} holds no address. ${WHERE_TO_CHANGE}`;
  // Only host and port are shown: a URL may hold a password.
  const shown = endpoints.map(({ host, port }) => `${host}:${port}`).join(', ');
  if (!(await canReachOne(endpoints))) {
    return `${variable} names ${shown}, where nothing answers. ${WHERE_TO_CHANGE}`;
  }
  const answered = answers(value);
  const isAnswering = (await settlesWithin(answered, 5_000)) && (await answered);
  return isAnswering
    ? undefined
    : `${variable} names ${shown}, which answers, but not in the protocol it should. ${WHERE_TO_CHANGE}`;
}

const WHERE_TO_CHANGE =
  'Correct the variable in the environment of this command, or unset it to have one started here.';

async function canReachOne(endpoints: readonly Endpoint[]): Promise<boolean> {
  const tries = await Promise.all(endpoints.map(({ host, port }) => canConnect(host, port, 4_000)));
  return tries.includes(true);
}

export function parseBrokers(brokers: string): Endpoint[] {
  return brokers.split(',').flatMap((broker) => endpointOf(broker.trim(), 9_092));
}

/** Hosts of a URL; a MongoDB URL may list several. A name that only DNS can resolve (mongodb+srv) has no endpoint. */
export function parseUrl(url: string, defaultPort: number): Endpoint[] {
  const authority = /^[a-z+]+:\/\/(?:[^/@]*@)?([^/?]+)/.exec(url)?.[1] ?? '';
  return authority.split(',').flatMap((host) => endpointOf(host, defaultPort));
}

function endpointOf(text: string, defaultPort: number): Endpoint[] {
  const parts = /^(\[[^\]]+\]|[^:\s]+)(?::(\d+))?$/.exec(text);
  if (parts?.[1] === undefined) return [];
  return [{ host: parts[1].replace(/^\[|\]$/g, ''), port: Number(parts[2] ?? defaultPort) }];
}
