/** What an app keeps of its payloads. `until-delivered`: until every delivery of a message is delivered. */
export const STORE_PAYLOADS = ['retained', 'until-delivered'] as const;

export type StorePayloads = (typeof STORE_PAYLOADS)[number];

/** What an app stores; absent fields have the defaults `true` and `retained` (docs/contract.md C5.9, C5.10). */
export interface StorageSettings {
  storeResponses?: boolean;
  storePayloads?: StorePayloads;
}

/**
 * What is not stored of a message and its attempts, by the settings of its app when it was accepted. Every
 * record and delivery of the message has it, and nearly none has a field.
 */
export interface NotStored {
  /** The payload is erased once every delivery is delivered, and travels in no record. */
  erasesPayload?: true;
  /** Attempts are stored without the response of the endpoint. */
  omitsResponses?: true;
}

export function notStoredBy({ storeResponses, storePayloads }: StorageSettings): NotStored {
  return {
    ...(storePayloads === 'until-delivered' && { erasesPayload: true }),
    ...(storeResponses === false && { omitsResponses: true }),
  };
}

/** Returns these fields alone, without the other fields of the object that they are taken from. */
export function notStoredOf({ erasesPayload, omitsResponses }: NotStored): NotStored {
  return { ...(erasesPayload && { erasesPayload }), ...(omitsResponses && { omitsResponses }) };
}
