import type { IdentifiedRef } from '../delivery-lifecycle/settlement.ts';

/** The ids with which a log line says whose delivery it is about. */
export type DeliveryLogFields = Pick<
  IdentifiedRef,
  'messageId' | 'deliveryId' | 'webhookId' | 'companyId'
>;

/** Returns these ids alone, for a line that tells what became of a delivery. */
export function logFieldsOf({
  messageId,
  deliveryId,
  webhookId,
  companyId,
}: DeliveryLogFields): DeliveryLogFields {
  return { messageId, deliveryId, webhookId, companyId };
}

/** How many ids of each kind a line about many deliveries has. */
const MAX_IDS = 5;

/** The same for a line about many deliveries: the first few ids of each kind, each once. */
export function logFieldsOfMany(deliveries: readonly DeliveryLogFields[]): {
  messageIds: string[];
  deliveryIds: string[];
  webhookIds: string[];
  companyIds: string[];
} {
  const first = (name: keyof DeliveryLogFields): string[] =>
    [...new Set(deliveries.map((delivery) => delivery[name]))].slice(0, MAX_IDS);
  return {
    messageIds: first('messageId'),
    deliveryIds: first('deliveryId'),
    webhookIds: first('webhookId'),
    companyIds: first('companyId'),
  };
}
