import type { ApiClient } from '../process/api-client.ts';
import { eventually } from '../time/eventually.ts';
import type { ShownDelivery } from '../process/resources.ts';
import { readDeliveries, type Sent } from '../process/traffic.ts';

/** Resolves with all deliveries once none of them is pending. */
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
    throw new Error(`${waiting.length} are pending, such as ${waiting[0]}`, { cause: error });
  });
  return final;
}

/** How long after the end of the one before each attempt began, in milliseconds, by the clock of who made them. */
export function waitsMs({ attempts }: ShownDelivery): number[] {
  return attempts
    .slice(1)
    .map(
      ({ createdAt }, index) =>
        Date.parse(createdAt) - Date.parse(attempts[index]?.updatedAt ?? ''),
    );
}
