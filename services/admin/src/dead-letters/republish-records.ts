import { awaitsAttempt } from '@posthorn/domain/delivery.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type {
  DeliveryState,
  DeliveryStore,
} from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import type { Letter } from './read-letter.ts';
import type { ReplayBook, SkipReason } from './replay-tally.ts';

export interface RepublishDeps {
  isDryRun: boolean;
  book: ReplayBook;
  /** Topics that there are. */
  topics: ReadonlySet<string>;
  deliveries: Pick<DeliveryStore, 'statesOf'>;
  log: Pick<RecordLog, 'publish'>;
}

/** Publishes records again as they were, for a version that reads them or where the fault is gone. */
export function createRepublish(deps: RepublishDeps) {
  const { isDryRun, book, deliveries, log } = deps;
  return async (letters: readonly Letter[]): Promise<void> => {
    const ids = letters.flatMap(({ content }) => content?.deliveryId ?? []);
    const states = await deliveries.statesOf(ids);
    const wanted = letters.filter((letter) => {
      const why = reasonAgainst(deps, letter, states);
      if (why) book.skipped(letter.id, why);
      return why === null;
    });
    if (!isDryRun) {
      await log.publish(wanted.map(({ source, record }) => ({ topic: source.topic, ...record })));
    }
    for (const { id, source } of wanted) book.republished(id, source.topic);
  };
}

function reasonAgainst(
  { topics }: RepublishDeps,
  { cutFromBytes, hasKnownSource, source, content }: Letter,
  states: ReadonlyMap<string, DeliveryState>,
): SkipReason | null {
  if (cutFromBytes !== null) return 'cut';
  if (!hasKnownSource) return 'unknown_source_topic';
  if (!topics.has(source.topic)) return 'source_topic_missing';
  // Readable by now, and perhaps replayed before: an attempt that was made is not made again.
  const isOpen =
    !content || awaitsAttempt(states.get(content.deliveryId), content.nextAttemptNumber);
  return isOpen ? null : 'moved_on';
}
