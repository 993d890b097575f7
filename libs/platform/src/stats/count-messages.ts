import { beginningOf } from '@posthorn/domain/stats.ts';
import type { UsageCounts } from '../mongo/stats/stats-documents.ts';
import { keyOfUsage, noUsage } from './count-attempts.ts';
import type { WriteBehind } from './write-behind.ts';

/** An accepted message. */
export interface CountedMessage {
  companyId: string;
  /** Milliseconds since 1970. */
  createdAtMs: number;
  payloadBytes: number;
}

export type CountMessage = (message: CountedMessage) => void;

export interface CountMessagesDeps {
  usage: Pick<WriteBehind<UsageCounts>, 'sumOf'>;
  /** Called with how many messages are not counted, for lack of memory. */
  onLost: (count: number) => void;
}

/** Counts a message for its company. */
export function createCountMessages({ usage, onLost }: CountMessagesDeps): CountMessage {
  return ({ companyId, createdAtMs, payloadBytes }) => {
    const hourMs = beginningOf('hour', createdAtMs);
    const sum = usage.sumOf(keyOfUsage({ companyId, hourMs }), () => noUsage(companyId, hourMs));
    if (!sum) {
      onLost(1);
      return;
    }
    sum.messages += 1;
    sum.messageBytes += payloadBytes;
  };
}
