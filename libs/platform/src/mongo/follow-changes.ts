import mongoose, { type mongo } from 'mongoose';
import { Gauge, type Registry } from 'prom-client';
import { pause } from '../async/pause.ts';
import type { Logger } from '../service/logger.ts';
import { monotonicClockMs } from '../service/clock-and-ids.ts';
import type { ServiceContext } from '../service/run-service.ts';

/** The collections whose documents processes cache. */
export type FollowedName =
  | 'companies'
  | 'apiKeys'
  | 'projects'
  | 'eventTypes'
  | 'apps'
  | 'webhooks'
  | 'signingKeys'
  | 'requestedErasures'
  | 'filterCancellations';

/** A document that was stored, changed or removed. */
export interface Change {
  /** The name of its collection. */
  collection: string;
  id: string;
  isRemoved: boolean;
  /** The app and the company of a new document. */
  appId: string | null;
  companyId: string | null;
  /** The names of the fields that an update has set or removed; null when it may be any. */
  fields: readonly string[] | null;
}

/** Whether the field, or a part of it, may have another value now. */
export function mayHaveChanged({ fields }: Pick<Change, 'fields'>, name: string): boolean {
  return fields === null || fields.some((each) => each === name || each.startsWith(`${name}.`));
}

/** The changes of some collections, by whichever process they are made. */
export interface FollowedChanges {
  /** Returns true while every change has been reported that MongoDB confirmed more than a second ago. */
  isCurrent: () => boolean;
  /** Resolves when `isCurrent` is true for the first time. */
  whenCurrent: Promise<void>;
  /** `onMissed` is called when changes of any document may have been missed. */
  listen: (onChange: OnChange, onMissed: () => void) => void;
}

type OnChange = (change: Change) => void;

/** Polls, because a change stream that waits wakes up at each write to any collection of the server. */
const POLL_EVERY_MS = 500;
/** An older confirmation proves nothing. With the poll before, a response may take half a second. */
const CURRENT_WITHIN_MS = 1_000;
const REOPEN_AFTER_MS = 1_000;
/** A batch with fewer events is the end of the stream: an event has 300 bytes, a batch at most 16 MB. */
const BATCH = 1_000;

interface Context extends Pick<ServiceContext<unknown>, 'logger' | 'registry'> {
  lifecycle: Pick<ServiceContext<unknown>['lifecycle'], 'stopping'>;
}

/**
 * Follows the collections until the service stops. Without the rights or a replica set `isCurrent` stays false, and
 * caches keep entries for two seconds (docs/decisions/0003-caches.md).
 */
export function followChanges(
  { logger, registry, lifecycle }: Context,
  connection: mongoose.Connection,
  names: readonly FollowedName[],
): FollowedChanges {
  const listeners: OnChange[] = [];
  const missed: (() => void)[] = [];
  const feed = new ChangeFeed(names, {
    openSession: () => openSession(connection),
    onChange: (change) => {
      for (const listener of listeners) listener(change);
    },
    onMissed: () => {
      for (const listener of missed) listener();
    },
    wait: (ms) => pause(ms, lifecycle.stopping),
    isStopping: () => lifecycle.stopping.aborted,
    monotonicMs: monotonicClockMs,
    logger,
  });
  void feed.run();
  const isCurrent = (): boolean => feed.isCurrent();
  watchChanges(registry, isCurrent);
  return {
    isCurrent,
    whenCurrent: feed.whenCurrent,
    listen(onChange, onMissed) {
      listeners.push(onChange);
      missed.push(onMissed);
    },
  };
}

export function watchChanges(registry: Registry, isCurrent: () => boolean): void {
  new Gauge({
    name: 'posthorn_config_changes_current',
    help: '1 while caches learn of each change of companies, keys, apps and webhooks within a second; 0 while they keep an entry for two seconds only.',
    registers: [registry],
    collect() {
      this.set(isCurrent() ? 1 : 0);
    },
  });
}

/** The part of a reply to `aggregate` and `getMore` that is used here. */
export interface CursorReply {
  cursor: {
    id: mongo.Long | number;
    firstBatch?: readonly ChangeEvent[];
    nextBatch?: readonly ChangeEvent[];
    postBatchResumeToken: { _data: string };
  };
  /** The last time of the cluster that the server knows of: at least that of each confirmed write before the request. */
  $clusterTime: { clusterTime: mongo.Timestamp };
}

interface ChangeEvent {
  operationType: string;
  ns: { coll: string };
  documentKey?: { _id: string };
  fullDocument?: { appId?: string | null; companyId?: string };
  fields?: readonly string[];
}

interface CommandSession {
  run: (command: mongo.Document) => Promise<CursorReply>;
  end: () => Promise<void>;
}

interface FeedDeps {
  onChange: OnChange;
  onMissed: () => void;
  openSession: () => CommandSession;
  wait: (ms: number) => Promise<void>;
  isStopping: () => boolean;
  monotonicMs: () => number;
  logger: Pick<Logger, 'info' | 'warn'>;
}

/** A cursor is read in the session that opened it. */
function openSession(connection: mongoose.Connection): CommandSession {
  const { db } = connection;
  if (!db) throw new mongoose.mongo.MongoNotConnectedError('there is no connection');
  const session = connection.getClient().startSession({ causalConsistency: false });
  return {
    run: async (command) => (await db.command(command, { session })) as CursorReply,
    end: () => session.endSession(),
  };
}

/**
 * The change stream of a process: one for all collections, because each stream reads the whole oplog, 8 to 10 µs of
 * MongoDB's CPU time for each write. The driver's own does not tell an empty batch from an event that is still to come,
 * and that is what proves that nothing is missing.
 *
 * A stream that breaks is opened anew, without its resume token, and everything cached is forgotten: a process may have
 * read a write that the earlier primary had not replicated, and no event reports its rollback.
 */
export class ChangeFeed {
  readonly #names: readonly FollowedName[];
  readonly #deps: FeedDeps;
  /** Every change before this time is reported. */
  #confirmedMs = -Infinity;
  readonly #current = Promise.withResolvers<undefined>();
  #isBroken = false;

  constructor(names: readonly FollowedName[], deps: FeedDeps) {
    this.#names = names;
    this.#deps = deps;
  }

  /** Resolves when every change is reported for the first time. */
  get whenCurrent(): Promise<void> {
    return this.#current.promise;
  }

  isCurrent(): boolean {
    return this.#deps.monotonicMs() - this.#confirmedMs <= CURRENT_WITHIN_MS;
  }

  /** Resolves when the process stops. */
  async run(): Promise<void> {
    const { isStopping, wait } = this.#deps;
    while (!isStopping()) {
      try {
        await this.#follow();
      } catch (error) {
        this.#noteBroken(error);
        await wait(REOPEN_AFTER_MS);
      }
    }
  }

  async #follow(): Promise<void> {
    const { openSession: open, onMissed, isStopping, monotonicMs, wait } = this.#deps;
    const session = open();
    try {
      let sentMs = monotonicMs();
      let reply = await session.run({
        aggregate: 1,
        pipeline: [{ $changeStream: {} }, { $match: relevantIn(this.#names) }, { $project: USED }],
        cursor: { batchSize: BATCH },
      });
      onMissed();
      this.#noteOpen();
      for (;;) {
        const isAtEnd = this.#report(reply);
        if (isAtEnd) this.#confirm(sentMs);
        if (isAtEnd || isIdle(reply)) await wait(POLL_EVERY_MS);
        if (isStopping()) return;
        sentMs = monotonicMs();
        reply = await session.run({
          getMore: longOf(reply.cursor.id),
          collection: OF_DATABASE,
          batchSize: BATCH,
          maxTimeMS: 1,
        });
      }
    } finally {
      await session.end().catch(() => undefined);
    }
  }

  #confirm(sentMs: number): void {
    this.#confirmedMs = sentMs;
    this.#current.resolve(undefined);
  }

  /** Returns whether there are no further events before the reply. */
  #report({ cursor, $clusterTime }: CursorReply): boolean {
    const events = cursor.firstBatch ?? cursor.nextBatch ?? [];
    for (const { operationType, ns, documentKey, fullDocument, fields } of events) {
      if (!documentKey) throw new Error(`a collection was changed by ${operationType}: ${ns.coll}`);
      const { appId = null, companyId = null } = fullDocument ?? {};
      const isRemoved = operationType === 'delete';
      this.#deps.onChange({
        collection: ns.coll,
        id: documentKey._id,
        isRemoved,
        appId,
        companyId,
        fields: operationType === 'update' ? (fields ?? null) : null,
      });
    }
    if (longOf(cursor.id).isZero()) throw new Error('MongoDB has closed the change stream');
    // A router of a sharded cluster waits for the slowest shard: then the token is older than the cluster.
    const isRecent = secondsOf(cursor.postBatchResumeToken) >= $clusterTime.clusterTime.t;
    return isRecent && events.length < BATCH;
  }

  #noteBroken(error: unknown): void {
    if (this.#isBroken || this.#deps.isStopping()) return;
    this.#isBroken = true;
    const text = 'cannot follow changes, caches keep entries for two seconds';
    this.#deps.logger.warn({ err: error }, text);
  }

  #noteOpen(): void {
    if (!this.#isBroken) return;
    this.#isBroken = false;
    this.#deps.logger.info({}, 'follows changes again');
  }
}

/** The name under which a stream of all collections of a database is read (MongoDB, getMore). */
const OF_DATABASE = '$cmd.aggregate';

/** Without what is written again and again, and cached nowhere: when a key was used, and when a webhook had a backlog. */
const relevantIn = (names: readonly FollowedName[]) => ({
  'ns.coll': { $in: names },
  'updateDescription.updatedFields.lastUsedAt': { $exists: false },
  'updateDescription.updatedFields.deferredAt': { $exists: false },
});

/** A field of a field is named with a dot. The values, such as sealed secrets, are not sent. */
const FIELDS = {
  $concatArrays: [
    {
      $map: {
        input: { $objectToArray: { $ifNull: ['$updateDescription.updatedFields', {}] } },
        in: '$$this.k',
      },
    },
    { $ifNull: ['$updateDescription.removedFields', []] },
  ],
};

const USED = {
  operationType: 1,
  'ns.coll': 1,
  'documentKey._id': 1,
  'fullDocument.appId': 1,
  'fullDocument.companyId': 1,
  fields: FIELDS,
};

const isIdle = ({ cursor }: CursorReply): boolean =>
  (cursor.firstBatch ?? cursor.nextBatch ?? []).length === 0;

const longOf = (id: mongo.Long | number): mongo.Long =>
  typeof id === 'number' ? mongoose.mongo.Long.fromNumber(id) : id;

/**
 * Returns the seconds since 1970 up to which a resume token has all changes. A token begins with the type of a
 * timestamp, 0x82, and its seconds (MongoDB, src/mongo/db/storage/key_string and db/pipeline/resume_token).
 */
function secondsOf({ _data: data }: { _data: string }): number {
  return data.startsWith('82') ? Number.parseInt(data.slice(2, 10), 16) : 0;
}
