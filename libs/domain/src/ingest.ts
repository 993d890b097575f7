import { hash } from 'node:crypto';
import { z } from 'zod';
import { text } from './field-types.ts';

/*
 * Ingestion: messages are accepted from records of Kafka (docs/ingest.md). These are the rules that the process which
 * ingests, gateways and the command for operators share.
 */

/** Of a topic (org.apache.kafka.common.internals.Topic). */
const TOPIC_NAME = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}$/;
/** Each source has about 14 time series in a process that may have 1,500. Company topics are one source together. */
const MAX_SOURCES = 50;

const brokers = z
  .array(z.string().regex(/^[^\s:,/@]+:\d{1,5}$/, 'must be host:port'))
  .min(1)
  .max(20);

const source = z.strictObject({
  topic: z.string().regex(TOPIC_NAME, 'must be the name of a topic'),
  companyId: text(1, 128),
  /** The app of records that name neither app nor webhook. */
  appId: text(1, 132).optional(),
  /** A header with the event type of records without `posthorn-event-type`. */
  eventTypeHeader: text(1, 128).optional(),
  /** The key of a record is the ordering key of its message, unless a header has one. */
  orderingKeyFromRecordKey: z.boolean().optional(),
  /** Of another cluster than the installation's, which INGEST_CLUSTERS says how to reach. */
  brokers: brokers.optional(),
});

/** A topic whose records are accepted as messages of a company. */
export type IngestSource = z.infer<typeof source>;

const sourcesMessage = `must be a JSON array of at most ${MAX_SOURCES} sources, such as [{"topic":"orders.webhooks","companyId":"comp_…"}] (docs/ingest.md)`;

/** Reads JSON. A failure shows nothing of it: it may have a password. */
const jsonText = (message: string) =>
  z.string().transform((json, context): unknown => {
    try {
      return JSON.parse(json);
    } catch {
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    }
  });

const SASL_NEEDS = 'mechanism, username and password go together';

const foreignCluster = z
  .strictObject({
    brokers,
    /** False only for a network that nobody else is in. */
    tls: z.boolean().default(true),
    /** Paths of PEM files; without `caFile`, the authorities that Node trusts. */
    caFile: text(1, 4_096).optional(),
    certFile: text(1, 4_096).optional(),
    keyFile: text(1, 4_096).optional(),
    mechanism: z.enum(['plain', 'scram-sha-256', 'scram-sha-512']).optional(),
    username: text(1, 1_024).optional(),
    password: text(1, 1_024).optional(),
  })
  .refine(
    ({ mechanism, username, password }) =>
      new Set([mechanism, username, password].map((each) => each === undefined)).size === 1,
    SASL_NEEDS,
  );

/** How a cluster of other programs is reached. */
export type ForeignCluster = z.infer<typeof foreignCluster>;

const clustersMessage =
  'must be a JSON array of clusters, such as [{"brokers":["kafka-eu-1:9093"],"mechanism":"scram-sha-512","username":"…","password":"…"}] (docs/ingest.md)';

/** INGEST_CLUSTERS. The login of the installation is never sent to one of them. */
export const foreignClusters = jsonText(clustersMessage).pipe(
  z
    .array(foreignCluster, clustersMessage)
    .max(MAX_SOURCES, clustersMessage)
    .refine(
      (clusters) => new Set(clusters.map(clusterOf)).size === clusters.length,
      'has a cluster twice',
    ),
);

/** INGEST_SOURCES. Its problems name the source by its place, and the field. */
export const ingestSources = jsonText(sourcesMessage).pipe(
  z
    .array(source, sourcesMessage)
    .max(MAX_SOURCES, sourcesMessage)
    .refine(
      (sources) => new Set(sources.map(placeOfSource)).size === sources.length,
      'has a topic twice',
    ),
);

const placeOfSource = (each: IngestSource): string => `${clusterOf(each)}/${each.topic}`;

/** Names the cluster of a source among those of one installation; '' for the installation's own. */
export function clusterOf({ brokers }: Pick<IngestSource, 'brokers'>): string {
  return brokers ? [...brokers].sort().join() : '';
}

/** The clusters of the sources; the installation's own is first, as '' (see clusterOf). */
export function clustersOf(sources: readonly IngestSource[], hasCompanyTopics: boolean): string[] {
  const own = hasCompanyTopics ? [''] : [];
  return [...new Set([...own, ...sources.map(clusterOf)])].toSorted();
}

/** The source of all company topics in metrics and in rejected records. No topic has a space. */
export const COMPANY_TOPICS = 'company topics';

/** The group in which the topics of sources are read. */
export const ingestGroupId = (prefix: string): string => `${prefix}ingest`;

const companyTopicBeginning = (prefix: string): string => `${prefix}ingest.`;

/** The topic whose records are messages of this company where INGEST_COMPANY_TOPICS is set. */
export const companyTopicOf = (prefix: string, companyId: string): string =>
  companyTopicBeginning(prefix) + companyId;

/** Returns the company of a company topic; null for any other topic. */
export function companyOfTopic(prefix: string, topic: string): string | null {
  const beginning = companyTopicBeginning(prefix);
  return topic.startsWith(beginning) && topic.length > beginning.length
    ? topic.slice(beginning.length)
    : null;
}

/** The sources of one cluster that have a topic, by topic. Names that Posthorn's own records have are no sources. */
export function sourcesAmong(
  existing: Iterable<string>,
  { sources, cluster, companyTopicsPrefix }: SourcesOfCluster,
): ReadonlyMap<string, NamedSource> {
  const named = new Map(
    sources
      .filter((each) => clusterOf(each) === cluster)
      .map((each): [string, NamedSource] => [each.topic, { ...each, name: each.topic }]),
  );
  const found = new Map<string, NamedSource>();
  for (const topic of existing) {
    const known = named.get(topic);
    if (known) found.set(topic, known);
    else if (companyTopicsPrefix !== null) {
      const companyId = companyOfTopic(companyTopicsPrefix, topic);
      if (companyId !== null) found.set(topic, { topic, companyId, name: COMPANY_TOPICS });
    }
  }
  return found;
}

interface SourcesOfCluster {
  sources: readonly IngestSource[];
  /** See clusterOf. */
  cluster: string;
  /** TOPIC_PREFIX where company topics are read; else null. */
  companyTopicsPrefix: string | null;
}

/** A source with its name in metrics: its topic, or COMPANY_TOPICS. */
export interface NamedSource extends IngestSource {
  name: string;
}

/** The place of a record. */
export interface IngestPlace {
  /** The id that the cluster reports about itself; '' for one that has none. */
  clusterId: string;
  topic: string;
  partition: number;
  offset: number;
  /** -1 for a record without a time. Some producers give microseconds. */
  timestampMs: number;
}

/**
 * Returns the idempotency key of a record without one. Partitions and clusters have records with equal offsets, and so
 * has a topic that was deleted and made again, whose records have other times.
 */
export function placeKeyOf({
  clusterId,
  topic,
  partition,
  offset,
  timestampMs,
}: IngestPlace): string {
  return `kafka/${clusterId}/${topic}/${partition}/${offset}/${timestampMs}`;
}

/**
 * CloudEvents in binary mode (Kafka protocol binding 1.0.2, 3.2). Source and id together name an event (CloudEvents
 * 1.0.2, 3.1.1); both may be long, and have any characters.
 */
export const CE_TYPE_HEADER = 'ce_type';
export const CE_SOURCE_HEADER = 'ce_source';
export const CE_ID_HEADER = 'ce_id';
/** Of the extension Partitioning (CloudEvents 1.0.2): events with the same key belong together. */
export const CE_PARTITION_KEY_HEADER = 'ce_partitionkey';

/** Returns the idempotency key of a CloudEvent; null unless both are there. */
export function cloudEventKeyOf(source: string | undefined, id: string | undefined): string | null {
  if (source === undefined || id === undefined) return null;
  return `cloudevents/${hash('sha256', JSON.stringify([source, id]), 'hex')}`;
}

/** The headers of an ingested record, beside those of message-fields.ts. Another header that begins like these is refused. */
export const APP_ID_HEADER = 'posthorn-app-id';
export const WEBHOOK_ID_HEADER = 'posthorn-webhook-id';
export const EVENT_TYPE_HEADER = 'posthorn-event-type';
export const IDEMPOTENCY_KEY_HEADER = 'posthorn-idempotency-key';
export const OWN_HEADERS_BEGIN = 'posthorn-';

/** The headers of a rejected record, beside its own. */
export const REJECT_HEADERS_BEGIN = 'posthorn-reject-';
/** A code of the API's errors. */
export const REJECT_CODE_HEADER = 'posthorn-reject-code';
/** The reason in a sentence, for a person. */
export const REJECT_MESSAGE_HEADER = 'posthorn-reject-message';
/** The place of the record, as `placeKeyOf` writes it. */
export const REJECT_SOURCE_HEADER = 'posthorn-reject-source';
/** The last offset of what was rejected, where that is more than one record. */
export const REJECT_TO_OFFSET_HEADER = 'posthorn-reject-to-offset';
/** The number of bytes of the value, on a record with only the beginning of it, or nothing. */
export const REJECT_CUT_HEADER = 'posthorn-reject-cut-from-bytes';

/** The codes with which a record is rejected: those of the API (services/gateway/src/error-codes.ts), and `unreadable`. */
export const REJECT_CODES = [
  'invalid_json',
  'invalid_request',
  'body_too_large',
  'not_found',
  'quota_exceeded',
  'event_type_unknown',
  'payload_invalid',
  'idempotency_key_reused',
  'internal_error',
  // Its batch, its headers, or a format of before Kafka 0.11 cannot be read: only its place is known.
  'unreadable',
] as const;

export type RejectCode = (typeof REJECT_CODES)[number];

const PLACE_KEY = /^kafka\/([^/]*)\/([^/]+)\/(\d{1,10})\/(\d{1,19})\/(-1|\d{1,19})$/;

/** The reverse of `placeKeyOf`; null for another text. */
export function readPlaceKey(text: string): IngestPlace | null {
  const [, clusterId = '', topic, partition, offset, timestampMs] = PLACE_KEY.exec(text) ?? [];
  if (topic === undefined) return null;
  return {
    clusterId,
    topic,
    partition: Number(partition),
    offset: Number(offset),
    timestampMs: Number(timestampMs),
  };
}

/** A place key with the longest name of a topic has 330 characters, and a replayed record carries it in a header. */
export const ingestedKey = z
  .string()
  .regex(/^[\x20-\x7e]{1,400}$/, 'must be 1 to 400 printable ASCII characters');
