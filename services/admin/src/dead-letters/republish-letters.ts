import { awaitsAttempt } from '@posthorn/domain/message/delivery.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import type { DeliveryState } from '@posthorn/domain/message/delivery.ts';
import type { Letter } from './read-letter.ts';
import type { ReplayReport, SkipReason } from './replay-report.ts';

export interface RepublishLettersDeps {
  isDryRun: boolean;
  report: ReplayReport;
  /** The topics that exist. */
  topics: ReadonlySet<string>;
  deliveries: Pick<DeliveryStore, 'statesOf'>;
  records: Pick<RecordLog, 'publish'>;
}

/** Publishes the records of letters unchanged to their own topics, where a fixed or later version can read them. */
export function createRepublishLetters(deps: RepublishLettersDeps) {
  const { isDryRun, report, deliveries, records } = deps;
  return async (letters: readonly Letter[]): Promise<void> => {
    const ids = letters.flatMap(({ content }) => content?.deliveryId ?? []);
    const states = await deliveries.statesOf(ids);
    const wanted = letters.filter((letter) => {
      const reason = skipReasonOf(deps, letter, states);
      if (reason) report.skipped(letter.id, reason);
      return reason === null;
    });
    if (!isDryRun) {
      await records.publish(
        wanted.map(({ source, record }) => ({ topic: source.topic, ...record })),
      );
    }
    for (const { id, source } of wanted) report.republished(id, source.topic);
  };
}

function skipReasonOf(
  { topics }: RepublishLettersDeps,
  { cutFromBytes, hasKnownSource, source, content }: Letter,
  states: ReadonlyMap<string, DeliveryState>,
): SkipReason | null {
  if (cutFromBytes !== null) return 'cut';
  if (!hasKnownSource) return 'unknown_source_topic';
  if (!topics.has(source.topic)) return 'source_topic_missing';
  // A record that is readable now may have been replayed before: an attempt is not made twice.
  const isDue =
    !content || awaitsAttempt(states.get(content.deliveryId), content.nextAttemptNumber);
  return isDue ? null : 'moved_on';
}
