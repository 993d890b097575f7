import type { ApiClient } from '../../../test/support/api/api-client.ts';
import type { StepResult } from './step-result.ts';

/** The objective of accept: what may be refused. */
const MAX_REFUSED_SHARE = 0.001;

/** The webhook that the nth message goes to, from 0. */
export type Target = (nth: number) => string;

/** Every second message goes to the first webhook, the others to the rest in turn. */
export function halfToFirst([first = '', ...rest]: readonly string[]): Target {
  const toRest = inTurn(rest);
  return (nth) => (nth % 2 === 0 ? first : toRest(Math.floor(nth / 2)));
}

export function inTurn(webhookIds: readonly string[]): Target {
  return (nth) => webhookIds[nth % webhookIds.length] ?? '';
}

/** Sends messages while the work runs. It is a problem when more than a thousandth of them are refused. */
export async function underTraffic(
  traffic: { api: ApiClient; target: Target; everyMs: number },
  work: () => Promise<StepResult[]>,
): Promise<StepResult[]> {
  const { stop } = startTraffic(traffic);
  const results: StepResult[] = [];
  try {
    results.push(...(await work()));
  } finally {
    results.push(await stop());
  }
  return results;
}

function startTraffic({ api, target, everyMs }: Parameters<typeof underTraffic>[0]): {
  stop: () => Promise<StepResult>;
} {
  const sending = new Set<Promise<void>>();
  let sent = 0;
  const refusals: string[] = [];
  const send = async (): Promise<void> => {
    const nth = sent++;
    try {
      await api.send({ webhookId: target(nth) }, { nth });
    } catch (error) {
      refusals.push(String(error));
    }
  };
  const timer = setInterval(() => {
    const message = send().finally(() => sending.delete(message));
    sending.add(message);
  }, everyMs);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(sending);
      const saw = `${sent} messages, ${refusals.length} refused`;
      const isGood = refusals.length <= sent * MAX_REFUSED_SHARE;
      return { saw, problem: isGood ? null : `${saw}: ${refusals[0] ?? ''}` };
    },
  };
}
