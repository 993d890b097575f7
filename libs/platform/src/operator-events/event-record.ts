import { encodeOperatorEvent, type OperatorEvent } from '@posthorn/domain/operator-events.ts';
import type { OutgoingRecord } from '../kafka/record-log.ts';

/** The events of one webhook are in one partition, in their order. */
export function eventRecord(topic: string, event: OperatorEvent): OutgoingRecord {
  const key = event.webhookId ?? event.companyId ?? '';
  return { topic, key, value: encodeOperatorEvent(event) };
}
