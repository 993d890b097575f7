import { createIdFactory, timeMsOf, type IdPrefix } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';

/** Returns a source of ids, each one millisecond after the previous one, so that tests know them in advance. */
export function countingIds(firstMs = 1_700_000_000_000): (prefix: IdPrefix) => string {
  let ms = firstMs - 1;
  return createIdFactory({ nowMs: () => (ms += 1), randomBytes: (size) => Buffer.alloc(size) });
}

export function sampleMessage(id: string, overrides: Partial<Message> = {}): Message {
  return {
    id,
    companyId: 'comp_a',
    appId: null,
    payload: '{"n":1}',
    targets: ['wh_1'],
    publisherId: 'gw_1',
    requestId: 'request-1',
    createdAtMs: timeMsOf(id),
    eventType: null,
    disabledTargets: new Set<string>(),
    idempotency: null,
    ...overrides,
  };
}
