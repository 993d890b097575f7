import {
  addCounts,
  attemptsIn,
  beginningOf,
  countAttempt,
  countedAtMs,
  type CountedAttempt,
  MINUTE_MS,
  noAttempts,
} from '@posthorn/domain/stats.ts';
import type { MinuteCounts, StatsOwnerKind, UsageCounts } from '../mongo/stats/stats-documents.ts';
import type { WriteBehind } from './write-behind.ts';

/** Whose attempt it was. */
export interface AttemptOwners {
  companyId: string;
  webhookId: string;
  /** The app of the webhook; null for a global one. */
  appId: string | null;
}

export type CountAttempt = (owners: AttemptOwners, counted: CountedAttempt) => void;

export interface CountAttemptsDeps {
  minutes: Pick<WriteBehind<MinuteCounts>, 'sumOf'>;
  usage: Pick<WriteBehind<UsageCounts>, 'sumOf'>;
  /** Called with how many attempts are not counted, for lack of memory. */
  onLost: (count: number) => void;
}

/** Counts an attempt for its webhook, its app and its company. */
export function createCountAttempts({ minutes, usage, onLost }: CountAttemptsDeps): CountAttempt {
  function countFor(
    kind: StatsOwnerKind,
    ownerId: string,
    companyId: string,
    counted: CountedAttempt,
  ): void {
    const minuteMs = beginningOf('minute', countedAtMs(counted));
    const sum = minutes.sumOf(keyOfMinute({ ownerId, minuteMs }), () => ({
      kind,
      ownerId,
      companyId,
      minuteMs,
      counts: noAttempts(),
    }));
    if (sum) countAttempt(sum.counts, counted);
    else onLost(1);
  }

  return ({ companyId, webhookId, appId }, counted) => {
    countFor('webhook', webhookId, companyId, counted);
    if (appId !== null) countFor('app', appId, companyId, counted);
    countFor('company', companyId, companyId, counted);
    const hourMs = beginningOf('hour', countedAtMs(counted));
    const sum = usage.sumOf(keyOfUsage({ companyId, hourMs }), () => noUsage(companyId, hourMs));
    if (sum) useAttempt(sum, counted);
    else onLost(1);
  };
}

function useAttempt(sum: UsageCounts, { attempt, payloadBytes }: CountedAttempt): void {
  sum.attempts += 1;
  sum.sentBytes += payloadBytes;
  if (attempt.number === 1) sum.deliveries += 1;
  if (attempt.outcome === 'success') sum.succeeded += 1;
}

export function noUsage(companyId: string, hourMs: number): UsageCounts {
  return {
    companyId,
    hourMs,
    messages: 0,
    messageBytes: 0,
    deliveries: 0,
    attempts: 0,
    succeeded: 0,
    sentBytes: 0,
  };
}

export function keyOfMinute({
  ownerId,
  minuteMs,
}: Pick<MinuteCounts, 'ownerId' | 'minuteMs'>): string {
  return `${ownerId}/${minuteMs / MINUTE_MS}`;
}

export function keyOfUsage({
  companyId,
  hourMs,
}: Pick<UsageCounts, 'companyId' | 'hourMs'>): string {
  return `${companyId}/${hourMs}`;
}

export function addMinute(sum: MinuteCounts, more: MinuteCounts): void {
  addCounts(sum.counts, more.counts);
}

export function addUsage(sum: UsageCounts, more: UsageCounts): void {
  sum.messages += more.messages;
  sum.messageBytes += more.messageBytes;
  sum.deliveries += more.deliveries;
  sum.attempts += more.attempts;
  sum.succeeded += more.succeeded;
  sum.sentBytes += more.sentBytes;
}

/** How many attempts or messages a sum stands for. */
export function sizeOfMinute({ counts }: MinuteCounts): number {
  return attemptsIn(counts);
}

export function sizeOfUsage({ attempts, messages }: UsageCounts): number {
  return attempts + messages;
}
