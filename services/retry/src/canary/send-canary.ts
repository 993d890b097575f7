import type { CanaryApi, CanaryWebhook } from './canary-api.ts';
import type { CanaryMetrics } from './canary-metrics.ts';

export interface SendCanaryDeps {
  api: CanaryApi;
  receiverUrl: string;
  metrics: Pick<CanaryMetrics, 'countFailure'>;
  nowMs: () => number;
}

export interface SendCanary {
  /** Sends one message. Counts a failure and rejects when the gateway does not take it. */
  send: () => Promise<void>;
  /** The webhook that signs; null until it is known. */
  webhook: () => CanaryWebhook | null;
  /** Reads the webhook again before the next message: its secret may have been rotated. */
  readAgain: () => void;
}

export function createSendCanary({ api, receiverUrl, metrics, nowMs }: SendCanaryDeps): SendCanary {
  let webhook: CanaryWebhook | null = null;
  let isRead = false;

  async function open(): Promise<CanaryWebhook> {
    if (webhook && isRead) return webhook;
    try {
      webhook = await api.openWebhook(receiverUrl);
      isRead = true;
      return webhook;
    } catch (error) {
      metrics.countFailure('setup');
      throw error;
    }
  }

  return {
    webhook: () => webhook,
    readAgain() {
      isRead = false;
    },
    async send() {
      const { id } = await open();
      try {
        await api.send(id, { sentAtMs: nowMs() });
      } catch (error) {
        metrics.countFailure('not_accepted');
        // Somebody may have deleted it.
        isRead = false;
        throw error;
      }
    },
  };
}
