import type { DeliveryState } from '@posthorn/domain/message/delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import type { Message } from '@posthorn/domain/message/message.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import {
  createdRecords,
  ONE_SEND,
  takeForOneSend,
} from '@posthorn/platform/outbox/created-records.ts';

export interface PublishMissingDeps {
  createdTopic: string;
  deliveries: Pick<DeliveryStore, 'statesOf'>;
  records: Pick<RecordLog, 'publish'>;
  /** Called before the records are published, with the oldest message that has none. */
  onMissing: (oldest: Message) => void;
  onPublished: (records: number) => void;
  /** Is awaited before each SLICE_RECORDS of a message to more webhooks. */
  beforeSlice: () => Promise<void>;
}

/** A message to more webhooks than this is published in slices. */
export const SLICE_RECORDS = 500;

/**
 * Publishes the messages for those of their targets that have no recorded delivery. Messages to many webhooks come
 * last: each of them takes seconds, so that it does not stand before the records of everybody else.
 */
export async function publishMissing(
  deps: PublishMissingDeps,
  page: readonly Message[],
): Promise<void> {
  const isWide = ({ targets }: Message): boolean => targets.length > SLICE_RECORDS;
  let left = [...page.filter((message) => !isWide(message)), ...page.filter(isWide)];
  while (left.length > 0) {
    const batch = takeForOneSend(left, ONE_SEND);
    const recorded = await deps.deliveries.statesOf(deliveryIdsOf(batch));
    const missing = unpublishedAmong(batch, recorded);
    const [oldest] = missing;
    if (oldest) {
      deps.onMissing(oldest);
      const created = missing.flatMap((message) => createdRecords(deps.createdTopic, message));
      if (missing.some(isWide)) await publishInSlices(deps, created);
      else await deps.records.publish(created);
      deps.onPublished(created.length);
    }
    left = left.slice(batch.length);
  }
}

async function publishInSlices(
  { records, beforeSlice }: PublishMissingDeps,
  created: readonly OutgoingRecord[],
): Promise<void> {
  for (let begin = 0; begin < created.length; begin += SLICE_RECORDS) {
    await beforeSlice();
    await records.publish(created.slice(begin, begin + SLICE_RECORDS));
  }
}

function deliveryIdsOf(batch: readonly Message[]): string[] {
  return batch.flatMap(({ id, targets }) => targets.map((target) => deliveryIdOf(id, target)));
}

/** The messages with only those targets whose delivery is not recorded: the others were published. */
function unpublishedAmong(
  batch: readonly Message[],
  recorded: ReadonlyMap<string, DeliveryState>,
): Message[] {
  return batch
    .map((message) => {
      const isMissing = (target: string) => !recorded.has(deliveryIdOf(message.id, target));
      return { ...message, targets: message.targets.filter(isMissing) };
    })
    .filter(({ targets }) => targets.length > 0);
}
