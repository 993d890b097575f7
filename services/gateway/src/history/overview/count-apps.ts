import {
  addCounts,
  attemptsIn,
  noAttempts,
  successesIn,
} from '@posthorn/domain/stats/attempt-counts.ts';
import { wholeSteps } from '@posthorn/domain/stats/steps.ts';
import type { StatsQueries } from '@posthorn/platform/mongo/stats/stats-queries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Apps } from '../../projects/apps.ts';

export interface CountAppsDeps {
  apps: Pick<Apps, 'existing'>;
  webhooks: Pick<WebhookStore, 'countOf'>;
  stats: Pick<StatsQueries, 'readSteps'>;
  nowMs: () => number;
}

export interface AppCounts {
  appId: string;
  /** Counted up to 10,000. */
  webhooks: number;
  /** Attempts in the last 24 hours, by whole hours. */
  succeeded: number;
  failed: number;
}

/** Returns the counts of those of the ids that are ids of apps, in no order. */
export type CountApps = (companyId: string, appIds: readonly string[]) => Promise<AppCounts[]>;

const DAY_MS = 86_400_000;
const MAX_WEBHOOKS = 10_000;

export function createCountApps(deps: CountAppsDeps): CountApps {
  return async (companyId, appIds) => {
    const existing = await deps.apps.existing(companyId, appIds);
    return Promise.all([...existing].map((appId) => countApp(deps, companyId, appId)));
  };
}

async function countApp(
  { webhooks, stats, nowMs }: CountAppsDeps,
  companyId: string,
  appId: string,
): Promise<AppCounts> {
  const toMs = nowMs();
  const span = wholeSteps('hour', { fromMs: toMs - DAY_MS, toMs });
  const [count, hours] = await Promise.all([
    webhooks.countOf(companyId, { appId, projectId: '' }, MAX_WEBHOOKS),
    stats.readSteps({ companyId, ownerId: appId }, 'hour', span),
  ]);
  const counts = noAttempts();
  for (const hour of hours) addCounts(counts, hour.counts);
  const succeeded = successesIn(counts);
  return { appId, webhooks: count, succeeded, failed: attemptsIn(counts) - succeeded };
}
