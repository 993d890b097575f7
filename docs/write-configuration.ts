import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { settings } from '@posthorn/platform/service/settings/settings.ts';
import { z } from 'zod';
import { dispatcherConfig } from '../services/dispatcher/src/config.ts';
import { gatewayConfig } from '../services/gateway/src/config.ts';
import { retryConfig } from '../services/retry/src/config.ts';
import { table } from './table.ts';

type Field = z.core.$ZodType;

/** Which process reads which settings. The setup commands run when imported, so their settings are repeated here. */
const READERS: Readonly<Record<string, Readonly<Record<string, Field>>>> = {
  gateway: gatewayConfig.shape,
  dispatcher: dispatcherConfig.shape,
  retry: retryConfig.shape,
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
    'Management port of the gateway; dispatcher and retry get the next two ports',
  ],
  [
    'POSTHORN_CACHE_DIR',
    '`~/.cache/posthorn`',
    'Folder of downloaded programs, shared by all clones',
  ],
  ['XDG_CACHE_HOME', '`~/.cache`', 'Parent folder of `posthorn` when the one above is not set'],
  ['JAVA_HOME', '`java` on the PATH', 'The Java installation that runs the started Kafka'],
];

const INTRODUCTION = `# Configuration

Settings are environment variables, read once at startup. A process that finds invalid ones lists all of them and exits 1; it
never prints a value. An empty variable counts as not set. \`NAME_FILE\` may name a file that contains the value of \`NAME\`,
for secrets that are mounted as files.

\`node docs/write-configuration.ts\` generates this page from the schemas; a test checks that it is up to date.

## Services and setup commands
`;

const LOCAL_INTRODUCTION = `## The local stack

These variables are read by \`npm start\`, \`npm run stack\` and \`npm test\` as well ([how the stack works](local-stack.md)). The
commands pass every setting of the first table on to the services. Unless set, they set \`EGRESS_ALLOW_LOOPBACK\` and
\`EGRESS_ALLOW_HTTP\` to \`true\` and \`TOPIC_REPLICATION\` to \`1\`.
`;

/** Returns the text of docs/configuration.md. */
export function configurationText(): string {
  const names = [...new Set(Object.values(READERS).flatMap((shape) => Object.keys(shape)))];
  const generated = table([['Setting', 'Default', 'Read by', 'Meaning'], ...names.map(toRow)]);
  const byHand = LOCAL_STACK.map(([name = '', ...rest]) => [`\`${name}\``, ...rest]);
  const local = table([['Variable', 'Default', 'Meaning'], ...byHand]);
  return [INTRODUCTION, generated, LOCAL_INTRODUCTION, local].join('\n');
}

function toRow(name: string): string[] {
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
  const isShared = defaults.size === 1;
  return [
    `\`${name}\``,
    isShared
      ? [...defaults].join('')
      : readers.map((reader) => `${reader.default} ${reader.reader}`).join(', '),
    readers.map(({ reader }) => reader).join(', '),
    meaning,
  ];
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
