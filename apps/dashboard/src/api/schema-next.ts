// TEMPORARY until the routes exist
export interface Overview {
  asOf: string;
  accepted: number;
  delivered: number;
  failed: number;
  pending: number;
  oldestPendingAt: string | null;
  latencyMs: { p50: number | null; p99: number | null };
  series: { at: string; delivered: number; failed: number }[];
  worst: {
    webhookId: string;
    url: string;
    appId: string | null;
    successRatio: number;
    failed: number;
    reason: string;
    since: string;
  }[];
}
export interface FailureGroup {
  webhookId: string;
  url: string;
  outcome: string;
  statusCode?: number | null;
  count: number;
  firstAt: string;
  lastAt: string;
}
