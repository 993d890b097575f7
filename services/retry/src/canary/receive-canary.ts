import { isSignedWith } from '@posthorn/domain/request/verify-signature.ts';
import { z } from 'zod';
import type { CanaryMetrics } from './canary-metrics.ts';
import type { SendCanary } from './send-canary.ts';

/** A delivery as it arrived. */
export interface ArrivedCanary {
  /** Values of `webhook-id`, `webhook-timestamp` and `webhook-signature`; '' without them. */
  messageId: string;
  timestamp: string;
  signature: string;
  payload: Buffer;
}

export interface ReceiveCanaryDeps extends Pick<SendCanary, 'webhook' | 'readAgain'> {
  metrics: CanaryMetrics;
}

const payloadSchema = z.object({ sentAtMs: z.number() });

/**
 * Returns the status that answers a delivery, and notes its arrival. The sender is told to come again (503) while
 * this process does not know the secret.
 */
export function createReceiveCanary({
  webhook,
  readAgain,
  metrics,
}: ReceiveCanaryDeps): (arrived: ArrivedCanary) => 204 | 400 | 401 | 503 {
  return ({ messageId, timestamp, signature, payload }) => {
    const secret = webhook()?.secret;
    if (secret === undefined) return 503;
    const signed = { messageId, timestampSeconds: Number(timestamp), payload };
    if (!isSignedWith(secret, signature, signed)) {
      metrics.countFailure('wrong_signature');
      readAgain();
      return 401;
    }
    const read = payloadSchema.safeParse(parseJson(payload));
    if (!read.success) {
      metrics.countFailure('unreadable');
      return 400;
    }
    metrics.noteArrival(read.data.sentAtMs);
    return 204;
  };
}

function parseJson(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString());
  } catch {
    return null;
  }
}
