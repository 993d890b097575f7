import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { settings } from '@posthorn/platform/service/settings.ts';
import { z } from 'zod';
import { dispatcherConfig } from '../services/dispatcher/src/config.ts';
import { gatewayConfig } from '../services/gateway/src/config.ts';
import { retryConfig } from '../services/retry/src/config.ts';

type Field = z.core.$ZodType;

/** Who reads what. The setup commands run when they are imported, so their settings are named again here. */
const READERS: Readonly<Record<string, Readonly<Record<string, Field>>>> = {
  gateway: gatewayConfig.shape,
  dispatcher: dispatcherConfig.shape,
  retry: retryConfig.shape,
  'create-topics': { ...settings.kafka, ...settings.topics },
  'create-indexes': { ...settings.mongodb, ...settings.retention },
  admin: {
    ...settings.mongodb,
    ...settings.encryption,
    KAFKA_BROKERS: settings.kafka.KAFKA_BROKERS,
    TOPIC_PREFIX: settings.kafka.TOPIC_PREFIX,
  },
};

/** What `npm start` and its relatives read besides. By hand: these are no zod schemas. */
const LOCAL_STACK = [
  ['STACK', 'Docker if usable', '`docker` or `native`: containers, or processes on this machine'],
  ['STACK_DIR', '`.local`', 'Where the stack keeps its data, logs and addresses'],
  ['KAFKA_BROKERS', 'own Kafka', 'Addresses of a Kafka to use instead of starting one'],
  ['MONGODB_URL', 'own MongoDB', 'Replica set and database to use instead of starting one'],
  ['REDIS_URL', 'own Redis', 'A Redis to use instead of starting one'],
  ['ENCRYPTION_KEYS', 'own key', 'Keys to use instead of the one below'],
  [
    'ENCRYPTION_KEYS_FILE',
    '`encryption-keys`',
    'File with the keys; the default lies in `STACK_DIR` and gets a random key at the first start',
  ],
  ['KAFKA_PORT', '`19092`', 'Port of the started Kafka'],
  ['KAFKA_CONTROLLER_PORT', '`19093`', 'Port on which the started Kafka talks to itself'],
  ['MONGODB_PORT', '`27117`', 'Port of the started MongoDB'],
  ['REDIS_PORT', '`16379`', 'Port of the started Redis'],
  ['HOST', '`127.0.0.1`', 'Address that the API listens on'],
  ['PORT', '`8080`', 'Port of the API'],
  ['OPS_PORT', '`9101`', 'Management port of the gateway; dispatcher and retry get the next two'],
  [
    'POSTHORN_CACHE_DIR',
    '`~/.cache/posthorn`',
    'Where downloaded programs are kept, for all clones',
  ],
  [
    'XDG_CACHE_HOME',
    '`~/.cache`',
    'The folder that holds `posthorn` when the one above is not set',
  ],
  ['JAVA_HOME', '`java` on the PATH', 'The Java that runs the started Kafka'],
];

const INTRODUCTION = `# Configuration

Settings are environment variables, read once at the start. A process that finds wrong ones names them all and exits 1; it
never prints a value. An empty variable counts as not set. Instead of \`NAME\`, \`NAME_FILE\` may name a file that holds the
value: for secrets that are mounted.

The first table is generated from the schemas by \`node docs/write-configuration.ts\`; a test holds it equal.

## Services and setup commands
`;

const LOCAL_INTRODUCTION = `## The local stack

What \`npm start\`, \`npm run stack\` and \`npm test\` read besides. They hand every setting of the first table on to the services,
and set \`EGRESS_ALLOW_LOOPBACK\` and \`EGRESS_ALLOW_HTTP\` to \`true\` and \`TOPIC_REPLICATION\` to \`1\` where you have not.
`;

/** The text of docs/configuration.md. */
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

/** The description may stand before or after `.default()` and its like. */
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

/** Columns as wide as their widest cell, as Prettier writes them. */
function table(rows: string[][]): string {
  const cells = rows.map((row) => row.map((cell) => cell.replaceAll('|', '\\|')));
  const [header = [], ...body] = cells;
  const widths = header.map((_, column) =>
    Math.max(...cells.map((row) => (row[column] ?? '').length)),
  );
  const line = (row: string[]) =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |\n`;
  const rule = widths.map((width) => '-'.repeat(width));
  return [header, rule, ...body].map(line).join('');
}

if (import.meta.main) {
  writeFileSync(join(import.meta.dirname, 'configuration.md'), configurationText());
}
