import { type NamedSource, REJECT_CODES, type RejectCode } from '@posthorn/domain/ingest.ts';
import type { RetryReason } from '@posthorn/domain/ingest-lag.ts';
import { StoppedError } from '@posthorn/platform/async/keep-trying.ts';
import { pause } from '@posthorn/platform/async/pause.ts';
import { describeUnreadable } from '@posthorn/platform/kafka/fetch/record-batches.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { CompanyLife } from '@posthorn/platform/mongo/companies/companies.ts';
import type { ClockWatch } from '@posthorn/platform/mongo/days/watch-clock.ts';
import {
  type ClaimedKey,
  type KeyHolders,
  mayTakeOver,
} from '@posthorn/platform/mongo/messages/idempotency-keys.ts';
import { publishRejects, type Reject } from '@posthorn/platform/records/ingest-rejects.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { AcceptOutcome } from '../accept/idempotency.ts';
import { isFault, isTemporary, toApiError, type UnavailableReason } from '../api-error.ts';
import type { Gateway } from '../gateway.ts';
import type { RateLimits } from '../limits/rate-limits.ts';
import type { NextSlice, Slices } from '../limits/slices.ts';
import type { Throttle } from '../limits/throttle.ts';
import type { Basis } from '../open-acceptance.ts';
import { isMarked, uidIn, type UidKind, type Uids } from '../projects/uids.ts';
import { type IngestMetrics } from './ingest-metrics.ts';
import type { LaneDeps, ReadRecord, RecordOutcome, Refused } from './partition-lane.ts';
import { type IngestedMessage, readRecord } from './read-record.ts';

export interface IngestParts extends Basis {
  limits: Pick<RateLimits, 'takeMessages'>;
  gateway: Pick<Gateway, 'acceptMany' | 'db' | 'messages' | 'uids' | 'nowMs'>;
  life: Pick<CompanyLife, 'statusOf'>;
  monotonicMs: () => number;
}

/** What lanes use of the process. */
export interface LaneParts extends Pick<
  IngestParts,
  'limits' | 'gateway' | 'life' | 'monotonicMs'
> {
  context: Pick<IngestParts['context'], 'logger' | 'keepTryingWhileDraining'>;
  kafka: Pick<IngestParts['kafka'], 'publishCopies' | 'topics'>;
  slices: Pick<Slices, 'next'>;
  throttle: Pick<Throttle, 'note' | 'charge' | 'chargeBytes'>;
  clock: Pick<ClockWatch, 'isRight'>;
}

/** Returns what the lanes of a cluster work with: how a record is read, accepted or rejected, and when it waits. */
export function createLaneDeps(
  parts: LaneParts,
  metrics: IngestMetrics,
): (clusterId: string, isSteady: () => boolean, stopping: AbortSignal) => LaneDeps {
  const { context, limits, slices, throttle } = parts;
  const { logger, keepTryingWhileDraining } = context;
  const whyWaits = createWhyWaits(parts);
  const reportWait = createWaitReport(logger, parts.monotonicMs);
  const nextSliceOf = (companyId: string): NextSlice => {
    return async (laterMs = 0) => {
      await slices.next(companyId);
      if (laterMs > 0) throttle.charge(companyId, laterMs);
    };
  };
  return (clusterId, isSteady, stopping) => ({
    read: (record, source) => tryToRead(record, source, clusterId),
    async nextSlice(companyId, bytes) {
      throttle.note(companyId);
      throttle.chargeBytes(companyId, bytes);
      await slices.next(companyId);
    },
    takePermits: limits.takeMessages,
    freeClaims: createFreeClaims({
      ...parts.gateway,
      areDaysSpread: parts.gateway.db.days.areSpread,
      stopping,
    }),
    async accept(source, messages) {
      const { companyId } = source;
      throttle.note(companyId);
      const nextSlice = nextSliceOf(companyId);
      await nextSlice();
      const outcomes = await acceptAll(parts, messages, nextSlice);
      metrics.accepted(source.name, countsOf(outcomes));
      return outcomes;
    },
    reject: (source, refused) => rejectAll(parts, metrics, { source, refused, clusterId }),
    whyWaits,
    isSteady,
    keepTrying: keepTryingWhileDraining,
    stopping,
    onWait: reportWait,
  });
}

interface Rejected {
  source: NamedSource;
  refused: readonly Refused[];
  clusterId: string;
}

async function rejectAll(
  { kafka, context: { logger } }: LaneParts,
  metrics: IngestMetrics,
  { source, refused, clusterId }: Rejected,
): Promise<void> {
  const rejects = refused.map((each) => ({ ...toReject(each, clusterId), error: each.error }));
  await publishRejects(kafka, kafka.topics.ingestRejected, rejects);
  for (const [code, ofCode] of Map.groupBy(rejects, (each) => each.code)) {
    metrics.rejected(source.name, code, ofCode.length);
    logRejected(logger, code, ofCode);
  }
}

function tryToRead(record: LogRecord, source: NamedSource, clusterId: string): ReadRecord {
  if (record.unreadable) {
    return { kind: 'refused', record, error: new Error(describeUnreadable(record.unreadable)) };
  }
  try {
    const message = readRecord(record.stored, source, { ...record, clusterId });
    return { kind: 'message', record, message };
  } catch (error) {
    return { kind: 'refused', record, error };
  }
}

async function acceptAll(
  { gateway }: Pick<LaneParts, 'gateway'>,
  messages: readonly IngestedMessage[],
  nextSlice: NextSlice,
): Promise<RecordOutcome[]> {
  const [appIds, webhookIds] = await Promise.all([
    idsOfMarked(gateway.uids, messages, 'app', ({ appId }) => appId),
    idsOfMarked(gateway.uids, messages, 'webhook', ({ webhookId }) => webhookId),
  ]);
  const requests = messages.map((message) => {
    const { companyId, eventType, payload, given, key, bodyHash, traceparent, place } = message;
    const { appId, webhookId = '' } = message;
    return {
      companyId,
      address:
        appId === undefined
          ? { kind: 'webhook' as const, webhookId: webhookIds.get(webhookId) ?? webhookId }
          : { kind: 'app' as const, appId: appIds.get(appId) ?? appId, eventType },
      eventType,
      payload,
      requestId: place,
      given,
      mayBeLate: true as const,
      traceparent,
      idempotency: { key, bodyHash, ingestedFrom: place },
    };
  });
  const outcomes = await gateway.acceptMany(requests, { nextSlice, isInOrder: true });
  return Promise.all(
    outcomes.map(async (outcome, index) => {
      const message = messages[index];
      const isUnknown = outcome.kind === 'failed' && toApiError(outcome.error).code === 'not_found';
      const [id] = [
        appIds.get(message?.appId ?? ''),
        webhookIds.get(message?.webhookId ?? ''),
      ].filter((each) => each !== undefined);
      if (!isUnknown || id === undefined || !message) return toRecordOutcome(outcome);
      // The cache may be two seconds old: another app may have the uid now.
      gateway.uids.cache.forget(id);
      const now = await holderOf(gateway.uids, message);
      const hasMoved = now !== null && now !== id;
      // The next try finds it: no reason that lasts.
      const { error } = outcome;
      return hasMoved ? { kind: 'waits', why: null, error } : toRecordOutcome(outcome);
    }),
  );
}

function holderOf(uids: Pick<Uids, 'holderOf'>, message: IngestedMessage): Promise<string | null> {
  const { companyId, appId, webhookId = '' } = message;
  const kind = appId === undefined ? 'webhook' : 'app';
  const uid = uidIn(appId ?? webhookId);
  return uid === null ? Promise.resolve(null) : uids.holderOf({ companyId, kind, uid });
}

/** Returns what is written as `uid:…` → the id of what has that uid. The messages are of one company. */
async function idsOfMarked(
  { idsOf }: Pick<Uids, 'idsOf'>,
  messages: readonly IngestedMessage[],
  kind: UidKind,
  textOf: (message: IngestedMessage) => string | undefined,
): Promise<Map<string, string>> {
  const [first] = messages;
  const marked = new Set(messages.map(textOf).filter(isMarked));
  if (!first || marked.size === 0) return new Map();
  const uids = new Set([...marked].flatMap((text) => uidIn(text) ?? []));
  const ids = await idsOf({ companyId: first.companyId, kind }, uids);
  return new Map(
    [...marked].flatMap((text): [string, string][] => {
      const id = ids.get(uidIn(text) ?? '');
      return id === undefined ? [] : [[text, id]];
    }),
  );
}

function toRecordOutcome(outcome: AcceptOutcome): RecordOutcome {
  switch (outcome.kind) {
    case 'accepted':
      return { kind: 'accepted', isNew: true };
    case 'replayed':
      return { kind: 'accepted', isNew: false };
    case 'failed': {
      const { error } = outcome;
      // A fault of ours is refused: it would stop the partition for good, and the record can be replayed.
      if (!isTemporary(error) || isFault(error)) return { kind: 'refused', error };
      return { kind: 'waits', why: whyRetried(error), error };
    }
  }
}

/** Returns why a record may be accepted later; null for what is over with the next try, such as a deadline. */
function whyRetried(error: unknown): RetryReason | null {
  const { code, reason } = toApiError(error);
  if (code === 'idempotency_key_running') return 'key_in_use';
  if (code === 'rate_limited') return 'rate_limited';
  return reason === null ? null : (RETRY_REASONS[reason] ?? null);
}

/** A reason that is missing is over with the next try. */
const RETRY_REASONS: Partial<Record<UnavailableReason, RetryReason>> = {
  mongodb_unavailable: 'store_unavailable',
  kafka_unavailable: 'store_unavailable',
  clock_wrong: 'clock_wrong',
  share_full: 'waiting_for_budget',
  too_many_waiting: 'waiting_for_budget',
};

function countsOf(outcomes: readonly RecordOutcome[]): { isNew: number; repeated: number } {
  const accepted = outcomes.filter((each) => each.kind === 'accepted');
  const isNew = accepted.filter((each) => each.isNew).length;
  return { isNew, repeated: accepted.length - isNew };
}

function toReject({ record, error }: Refused, clusterId: string): Reject {
  const { unreadable: missing, stored } = record;
  if (missing) {
    const place = { ...record, clusterId, offset: missing.firstOffset };
    return { place, code: 'unreadable', message: describeUnreadable(missing), stored, missing };
  }
  const { code, message } = toApiError(error);
  const known = REJECT_CODES.find((each) => each === code) ?? 'internal_error';
  return { place: { ...record, clusterId }, code: known, message, stored: record.stored };
}

/** One line for each batch and code: a producer can write any number of bad records. */
export function logRejected(
  logger: Pick<Logger, 'error' | 'warn'>,
  code: RejectCode,
  rejects: readonly (Reject & Pick<Refused, 'error'>)[],
): void {
  const [first] = rejects;
  if (!first) return;
  const { place, message: firstMessage, error } = first;
  const { topic, partition, offset: firstOffset } = place;
  const fields = { code, topic, partition, firstOffset, records: rejects.length, firstMessage };
  if (code === 'internal_error') logger.error({ err: error, ...fields }, 'records rejected');
  else logger.warn(fields, 'records rejected');
}

/**
 * A former owner of the partition may be about to store the message of its claim: an insert that it has sent is executed
 * within milliseconds, or as soon as a frozen MongoDB continues.
 */
const SEEN_TWICE_AFTER_MS = 1_000;

interface FreeClaimsDeps {
  messages: Pick<KeyHolders, 'findKeyHolders' | 'releaseKeys'>;
  nowMs: () => number;
  areDaysSpread: () => boolean;
  stopping: AbortSignal;
  waitMs?: number;
}

/** See LaneDeps.freeClaims. Rejects when a claim has to wait until it is over (`mayTakeOver`). */
export function createFreeClaims({
  messages: { findKeyHolders, releaseKeys },
  nowMs,
  areDaysSpread,
  stopping,
  waitMs = SEEN_TWICE_AFTER_MS,
}: FreeClaimsDeps): LaneDeps['freeClaims'] {
  async function findUnstored(
    companyId: string,
    records: readonly IngestedMessage[],
  ): Promise<{ key: string; found: ClaimedKey }[]> {
    const keys = records.map(({ key }) => key);
    const holders = await findKeyHolders(companyId, keys);
    return records.flatMap(({ key, place }) => {
      const found = holders.get(key);
      return found?.kind === 'claimed' && found.ingestedFrom === place ? [{ key, found }] : [];
    });
  }

  return async (companyId, records) => {
    const before = await findUnstored(companyId, records);
    if (before.length === 0) return;
    await pause(waitMs, stopping);
    if (stopping.aborted) throw new StoppedError('stopped before the claims were free');
    const claimedFor = new Map(before.map(({ key, found }) => [key, found.claimedFor]));
    const now = await findUnstored(companyId, records);
    const at = { nowMs: nowMs(), areDaysSpread: areDaysSpread() };
    const free = now.filter(
      ({ key, found }) => claimedFor.get(key) === found.claimedFor && mayTakeOver(found, at),
    );
    await releaseKeys(companyId, free);
    if (free.length < now.length) throw new Error('a claim of the same record is not over yet');
  };
}

/** How long the status of a company is cached: as long as an API key of it. */
const STATUS_FOR_MS = 2_000;

/** Returns what `whyWaits` of LaneDeps is. */
function createWhyWaits({ clock, life, monotonicMs }: LaneParts): LaneDeps['whyWaits'] {
  /** By company: as many as there are sources. */
  const known = new Map<string, { untilMs: number; status: ReturnType<typeof life.statusOf> }>();
  return async ({ companyId }) => {
    if (!clock.isRight()) return 'clock_wrong';
    let cached = known.get(companyId);
    if (!cached || cached.untilMs <= monotonicMs()) {
      cached = { untilMs: monotonicMs() + STATUS_FOR_MS, status: life.statusOf(companyId) };
      known.set(companyId, cached);
      cached.status.catch(() => known.delete(companyId));
    }
    const status = await cached.status;
    return status === 'active' || status === null ? null : 'company_suspended';
  };
}

/** A topic that waits is logged at once, and then every minute at most. */
const LOG_WAIT_EVERY_MS = 60_000;

export function createWaitReport(
  logger: Pick<Logger, 'warn'>,
  monotonicMs: () => number,
): LaneDeps['onWait'] {
  /** By topic: as many as there are sources. */
  const loggedAtMs = new Map<string, number>();
  return ({ topic, partition, offset }, error) => {
    if (monotonicMs() - (loggedAtMs.get(topic) ?? -Infinity) < LOG_WAIT_EVERY_MS) return;
    loggedAtMs.set(topic, monotonicMs());
    logger.warn({ err: error, topic, partition, offset }, 'records of a source wait, retrying');
  };
}
