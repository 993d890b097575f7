import mongoose from 'mongoose';
import type { Scene } from '../../round.ts';

const { Binary, BSON, Long, Timestamp } = mongoose.mongo;

/** A request for the next changes has these bytes: they are those of a whole database, whose cursor names no collection. */
export const NEXT_CHANGES = '$cmd.aggregate';

/** How every service stops hearing of changes, while everything else of MongoDB works. */
export interface Freeze {
  name: string;
  /** What the services see, in words. */
  shown: string;
  /** Responses of the API that its end brings about. */
  answers: readonly string[];
  begin: (scene: Scene) => void;
  end: (scene: Scene) => void;
}

/** As when the network loses what belongs to one connection. The driver gives up after 20 s and opens the next one. */
const silent: Freeze = {
  name: 'silent',
  shown: 'no request for the next changes gets a reply',
  // It resets every connection to MongoDB.
  answers: ['503', '409'],
  begin: ({ proxies }) => proxies.mongodb?.cutAt(NEXT_CHANGES),
  end: ({ proxies }) => proxies.mongodb?.mend(),
};

/** As behind a router of a sharded cluster one of whose shards is behind. */
export const behind: Freeze = {
  name: 'behind',
  shown:
    'each request for the next changes gets a reply at once: none, up to the time of the fault',
  answers: [],
  begin({ proxies }) {
    const untilMs = Date.now();
    proxies.mongodb?.answerAt({
      bytes: NEXT_CHANGES,
      reply: (request) => replyBehind(request, untilMs, Date.now()),
    });
  },
  end: ({ proxies }) => proxies.mongodb?.answerAt(null),
};

export const FREEZES: readonly Freeze[] = [silent, behind];

/** A message of MongoDB: a header, flags, and a document behind its kind (MongoDB Wire Protocol, OP_MSG). */
const OP_MSG = 2_013;
const HEADER_BYTES = 16;
const BODY_AT = HEADER_BYTES + 5;

/** Returns the reply to a `getMore` of a change stream that has nothing, and knows all changes before `untilMs`. */
export function replyBehind(request: Buffer, untilMs: number, nowMs: number): Buffer {
  const sentBytes = request.readInt32LE(BODY_AT);
  const sent = BSON.deserialize(request.subarray(BODY_AT, BODY_AT + sentBytes), {
    promoteLongs: false,
  });
  const body = BSON.serialize({
    cursor: {
      id: sent.getMore as mongoose.mongo.Long,
      ns: `${String(sent.$db)}.${NEXT_CHANGES}`,
      nextBatch: [],
      postBatchResumeToken: { _data: tokenBefore(untilMs) },
    },
    ok: 1,
    $clusterTime: {
      clusterTime: new Timestamp({ t: Math.floor(nowMs / 1_000), i: 1 }),
      signature: { hash: new Binary(Buffer.alloc(20)), keyId: Long.ZERO },
    },
  });
  const start = Buffer.alloc(BODY_AT);
  start.writeInt32LE(BODY_AT + body.length, 0);
  // The reply names the request, whose id is the second number.
  start.writeInt32LE(request.readInt32LE(4), 8);
  start.writeInt32LE(OP_MSG, 12);
  return Buffer.concat([start, body]);
}

/** A resume token begins with the type of a timestamp and its seconds; the whole second before is over. */
function tokenBefore(untilMs: number): string {
  const seconds = Math.floor(untilMs / 1_000) - 1;
  return `82${seconds.toString(16).padStart(8, '0').toUpperCase()}000000012B0429296E1404`;
}
