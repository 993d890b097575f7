import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { settings } from '@posthorn/platform/service/settings.ts';
import { z } from 'zod';
import { dispatcherConfig } from '../services/dispatcher/src/config.ts';
import { gatewayConfig, ingestConfig } from '../services/gateway/src/config.ts';
import { retryConfig } from '../services/retry/src/config.ts';
import { table } from './table.ts';

type Field = z.core.$ZodType;

/** Which process reads which settings. The setup commands run when imported, so their settings are repeated here. */
const READERS: Readonly<Record<string, Readonly<Record<string, Field>>>> = {
  gateway: gatewayConfig.shape,
  dispatcher: dispatcherConfig.shape,
  retry: retryConfig.shape,
  ingest: ingestConfig.shape,
  'create-topics': { ...settings.kafka, ...settings.topics },
  'create-indexes': { ...settings.mongodb, ...settings.retention },
  admin: {
    ...settings.mongodb,
    ...settings.publicUrl,
    ...settings.encryption,
    ...settings.kafka,
    ...settings.topics,
  },
};

/** What the commands of the local stack read as well. Written by hand, because these are no zod schemas. */
const LOCAL_STACK = [
  [
    'STACK',
    'Docker if usable',
    '`docker` or `native`: run the stores in containers, or as processes of this machine',
  ],
  ['STACK_DIR', '`.local`', 'Folder of data, logs and addresses of the stack'],
  ['KAFKA_BROKERS', 'own Kafka', 'Brokers of a running Kafka to use instead of starting one'],
  [
    'MONGODB_URL',
    'own MongoDB',
    'Replica set and database of a running MongoDB to use instead of starting one',
  ],
  ['REDIS_URL', 'own Redis', 'A running Redis to use instead of starting one'],
  ['ENCRYPTION_KEYS', 'own key', 'Keys to use instead of those in the file below'],
  [
    'ENCRYPTION_KEYS_FILE',
    '`encryption-keys`',
    'File with the keys; the default is in `STACK_DIR` and gets a random key at the first start',
  ],
  ['KAFKA_PORT', '`19092`', 'Port of the started Kafka'],
  ['KAFKA_CONTROLLER_PORT', '`19093`', 'Controller port of the started Kafka'],
  ['MONGODB_PORT', '`27117`', 'Port of the started MongoDB'],
  ['REDIS_PORT', '`16379`', 'Port of the started Redis'],
  ['HOST', '`127.0.0.1`', 'Address that the API listens on'],
  ['PORT', '`8080`', 'Port of the API'],
  ['PUBLIC_URL', 'the address above', 'Where the printed link to the dashboard leads'],
  [
    'OPS_PORT',
    '`9101`',
    'Management port of the gateway; dispatcher, retry and ingest get the next three ports',
  ],
  ['ISSUER_PORT', '`9180`', 'Port of the issuer of `npm start -- --people`'],
  [
    'POSTHORN_CACHE_DIR',
    '`~/.cache/posthorn`',
    'Folder of downloaded programs, shared by all clones',
  ],
  ['XDG_CACHE_HOME', '`~/.cache`', 'Parent folder of `posthorn` when the one above is not set'],
  ['JAVA_HOME', '`java` on the PATH', 'The Java installation that runs the started Kafka'],
];

interface Group {
  title: 'Must set' | 'May tune' | 'For trials';
  /** Of one of several groups with the same title. */
  about?: string;
  introduction: string;
  /** Names, or the beginnings of names before a `*`, in the order of use. */
  settings: readonly string[];
}

/** Every setting is in one of them. */
const GROUPS: readonly Group[] = [
  {
    title: 'Must set',
    introduction:
      'Nothing starts without these. In production set `PUBLIC_URL` and the access to the stores below too.',
    settings: ['KAFKA_BROKERS', 'MONGODB_URL', 'REDIS_URL', 'ENCRYPTION_KEYS'],
  },
  {
    title: 'May tune',
    about: 'addresses',
    introduction: 'Where the processes listen, and what is in front of them.',
    settings: [
      'HOST',
      'PORT',
      'PUBLIC_URL',
      'TRUSTED_PROXIES',
      'SOURCE_IPS',
      'OPS_HOST',
      'OPS_PORT',
    ],
  },
  {
    title: 'May tune',
    about: 'access to the stores',
    introduction: 'TLS, logins and names.',
    settings: ['KAFKA_*', 'TOPIC_*', 'MONGODB_*', 'REDIS_*'],
  },
  {
    title: 'May tune',
    about: 'delivery',
    introduction: 'Retries, time-outs and how much one process does at once.',
    settings: [
      'RETRY_DELAYS',
      'DELIVERY_TIMEOUT_MS',
      'ACCEPT_LINGER_MS',
      'INGEST_*',
      'MAX_IN_FLIGHT',
      'ENDPOINT_CONCURRENCY_MAX',
      'HOST_ATTEMPTS_PER_SECOND',
      'AUTO_DISABLE_AFTER',
      'RECONCILE_AFTER',
      'MEMORY_MIB',
      'DRAIN_TIMEOUT_MS',
    ],
  },
  {
    title: 'May tune',
    about: 'where deliveries may go',
    introduction: 'Private addresses are refused unless they are allowed here.',
    settings: ['EGRESS_DENY_*', 'EGRESS_ALLOW_CIDRS', 'EGRESS_ALLOW_PORTS', 'EGRESS_PROXY_*'],
  },
  {
    title: 'May tune',
    about: 'people who sign in',
    introduction: 'The OpenID Connect issuer of the dashboard ([people](people.md)).',
    settings: ['OIDC_*'],
  },
  {
    title: 'May tune',
    about: 'limits and quotas',
    introduction: 'What one company or client address may use.',
    settings: ['RATE_LIMIT_*', 'WRONG_KEYS_PER_MINUTE', 'QUOTA_*'],
  },
  {
    title: 'May tune',
    about: 'retention',
    introduction: '`create-indexes` stores them; run it again after a change.',
    settings: ['RETENTION_DAYS', 'AUDIT_RETENTION_DAYS'],
  },
  {
    title: 'May tune',
    about: 'watching',
    introduction: 'Logs, traces, operator events and the canary.',
    settings: [
      'LOG_LEVEL',
      'OTEL_*',
      'OPERATOR_*',
      'CANARY_API_KEY',
      'CANARY_GATEWAY_URL',
      'CANARY_RECEIVER_URL',
    ],
  },
  {
    title: 'For trials',
    introduction:
      'The local stack and tests set these, to work without TLS, on one machine, or in less time. Leave them alone in production.',
    settings: [
      'ALLOW_PLAINTEXT_STORES',
      'EGRESS_ALLOW_LOOPBACK',
      'EGRESS_ALLOW_HTTP',
      'DEFERRAL_DELAYS',
      'CIRCUIT_RESET_MS',
      'ENDPOINT_CONCURRENCY',
      'CANARY_PORT',
      'CANARY_INTERVAL',
    ],
  },
];

const INTRODUCTION = `# Configuration

Settings are environment variables, read once at startup. A process that finds invalid ones lists all of them and exits 1; it
never prints a value. An empty variable counts as not set. \`NAME_FILE\` may name a file that contains the value of \`NAME\`,
for secrets that are mounted as files.

\`node docs/write-configuration.ts\` generates this page from the schemas; a test checks that it is up to date. _Services_ are
gateway, dispatcher, retry and ingest.
`;

const LOCAL_INTRODUCTION = `## The local stack

These variables are read by \`npm start\`, \`npm run stack\` and \`npm test\` as well ([how the stack works](local-stack.md)). The
commands pass every setting above on to the services. Unless set, they set \`EGRESS_ALLOW_LOOPBACK\` and
\`EGRESS_ALLOW_HTTP\` to \`true\` and \`TOPIC_REPLICATION\` to \`1\`.
`;

/** Returns the text of docs/configuration.md. */
export function configurationText(): string {
  const names = new Set(Object.values(READERS).flatMap((shape) => Object.keys(shape)));
  const titles = new Set(GROUPS.map(({ title }) => title));
  const sections = [...titles].map((each) => {
    const groups = GROUPS.filter(({ title }) => title === each);
    const heading = ['Setting', 'Default', 'Read by', 'Meaning'];
    const rows = groups.flatMap((group) => rowsOf(group, names));
    const [{ about, introduction } = {}] = groups;
    const beginning = about === undefined ? `${wrapped(introduction ?? '')}\n` : '';
    return `## ${each}\n\n${beginning}${table([heading, ...rows])}`;
  });
  if (names.size > 0)
    throw new Error(`In no group of write-configuration.ts: ${[...names].join(', ')}`);
  const byHand = LOCAL_STACK.map(([name = '', ...rest]) => [`\`${name}\``, ...rest]);
  const local = table([['Variable', 'Default', 'Meaning'], ...byHand]);
  return [INTRODUCTION, ...sections, LOCAL_INTRODUCTION, local].join('\n');
}

/** The rows of a group, below one that names it where it is one of several. */
function rowsOf({ about, introduction, settings: wanted }: Group, names: Set<string>): string[][] {
  const rows = wanted.flatMap((each) => namesLike(each, names)).map(rowOf);
  return about === undefined ? rows : [[`**${about}**`, '', '', introduction], ...rows];
}

/** Returns the names that the text stands for, and takes them out of those that are left. */
function namesLike(text: string, left: Set<string>): string[] {
  const beginning = text.endsWith('*') ? text.slice(0, -1) : null;
  const found = [...left].filter((name) =>
    beginning === null ? name === text : name.startsWith(beginning),
  );
  if (found.length === 0) throw new Error(`There is no setting ${text} left.`);
  for (const name of found) left.delete(name);
  return found;
}

function rowOf(name: string): string[] {
  const readers = Object.entries(READERS).flatMap(([reader, shape]) => {
    const field = shape[name];
    return field ? [{ reader, meaning: meaningOf(field), default: defaultOf(field) }] : [];
  });
  const meanings = new Set(readers.map(({ meaning }) => meaning));
  const [meaning] = meanings;
  if (meanings.size !== 1 || meaning === undefined) {
    throw new Error(`${name} needs one .describe() text, the same wherever it is read.`);
  }
  const defaults = new Set(readers.map((reader) => reader.default));
  const value =
    defaults.size === 1
      ? [...defaults].join('')
      : readers.map((reader) => `${reader.default} ${reader.reader}`).join(', ');
  const readBy = readers.map(({ reader }) => reader).join(', ');
  return [`\`${name}\``, value, readBy.replace(SERVICES, 'services'), meaning];
}

const SERVICES = 'gateway, dispatcher, retry, ingest';
const WIDTH = 132;

/** Breaks a paragraph into lines. */
function wrapped(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= WIDTH)
      lines.push(`${lines.pop() ?? ''} ${word}`);
    else lines.push(word);
  }
  return `${lines.join('\n')}\n`;
}

/** The description may be given before or after `.default()` and similar calls. */
function meaningOf(field: Field): string | undefined {
  const inner = innerOf(field);
  return z.globalRegistry.get(field)?.description ?? (inner && meaningOf(inner));
}

function defaultOf(field: Field): string {
  if (field instanceof z.ZodDefault || field instanceof z.ZodPrefault) {
    return `\`${String(field.def.defaultValue)}\``;
  }
  if (field instanceof z.ZodOptional) return 'not set';
  const inner = innerOf(field);
  return inner ? defaultOf(inner) : '**required**';
}

function innerOf(field: Field): Field | undefined {
  if (field instanceof z.ZodPipe) return field.def.in;
  const isWrapper =
    field instanceof z.ZodDefault ||
    field instanceof z.ZodPrefault ||
    field instanceof z.ZodOptional;
  return isWrapper ? field.def.innerType : undefined;
}

if (import.meta.main) {
  writeFileSync(join(import.meta.dirname, 'configuration.md'), configurationText());
}
