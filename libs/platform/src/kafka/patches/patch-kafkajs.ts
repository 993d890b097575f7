import { patchCommittedOffsets } from './committed-offsets.ts';
import { patchEncoder } from './encoder.ts';
import { patchFetch } from './fetch.ts';
import { patchFetchPace } from './fetch-pace.ts';
import { patchJoins } from './joins.ts';
import { patchMetadata } from './metadata.ts';
import { patchOffsetOutOfRange } from './offset-out-of-range.ts';
import { patchProduce } from './produce.ts';
import { patchRequestQueue } from './request-queue.ts';
import { patchTopicIds } from './topic-ids.ts';

/** The release whose faults these are. A test fails with another one: each patch is to be compared with it then. */
export const PATCHED_VERSION = '2.2.4';

let isPatched = false;

/** Mends the faults of kafkajs in this process. Each file of this folder has one of them, with what happened. */
export function patchKafkajs(): void {
  if (isPatched) return;
  isPatched = true;
  patchRequestQueue();
  patchJoins();
  patchCommittedOffsets();
  patchFetchPace();
  patchMetadata();
  patchTopicIds();
  patchOffsetOutOfRange();
  patchFetch();
  patchEncoder();
  patchProduce();
}
