import type { ApiClient } from '../../../test/support/api/api-client.ts';
import type { StepResult } from './step-result.ts';

export interface Traffic {
  /** Stops sending. It is a problem when a message was refused. */
  stop: () => Promise<StepResult>;
}

/** Every second message goes to the first webhook, the others to the rest in turn. */
export function startTraffic(
  api: ApiClient,
  [first = '', ...rest]: readonly string[],
  everyMs: number,
): Traffic {
  const sending = new Set<Promise<void>>();
  let sent = 0;
  let accepted = 0;
  let refused: string | null = null;
  const send = async (): Promise<void> => {
    const nth = sent++;
    const webhookId = nth % 2 === 0 ? first : rest[Math.floor(nth / 2) % rest.length];
    try {
      await api.send({ webhookId }, { nth });
      accepted += 1;
    } catch (error) {
      refused ??= String(error);
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
      const problem = refused === null ? null : `A message was refused: ${refused}`;
      return { saw: `${accepted} messages`, problem };
    },
  };
}
