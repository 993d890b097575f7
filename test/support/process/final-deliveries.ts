import type { ApiClient } from '../api/api-client.ts';
import { eventually } from '../time/eventually.ts';
import type { ShownDelivery } from '../api/resources.ts';
import { readDeliveries, type Sent } from './traffic.ts';

/** Waits until none of the deliveries is pending; returns them. */
export async function untilFinal(
  api: ApiClient,
  sent: readonly Sent[],
  withinMs: number,
): Promise<ShownDelivery[]> {
  const final: ShownDelivery[] = [];
  let waiting = sent.map(({ deliveryId }) => deliveryId);
  const look = async (): Promise<boolean> => {
    const shown = await readDeliveries(api, waiting);
    final.push(...shown.filter(({ status }) => status !== 'pending'));
    waiting = shown.filter(({ status }) => status === 'pending').map(({ id }) => id);
    return waiting.length === 0;
  };
  await eventually(`all ${sent.length} final`, look, withinMs).catch((error: unknown) => {
    throw new Error(`${waiting.length} are pending, such as ${String(waiting[0])}`, {
      cause: error,
    });
  });
  return final;
}

/** Returns the time from the end of each attempt to the beginning of the next, in ms, by the clock of the dispatcher. */
export function waitsMs({ attempts }: ShownDelivery): number[] {
  return attempts
    .slice(1)
    .map(
      ({ createdAt }, index) =>
        Date.parse(createdAt) - Date.parse(attempts[index]?.updatedAt ?? ''),
    );
}
