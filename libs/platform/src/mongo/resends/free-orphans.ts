import type { MarkedDelivery, ResendMarks } from './resend-marks.ts';
import type { ResendStore } from './resends.ts';

export interface OrphanDeps {
  resends: Pick<ResendStore, 'findOne'>;
  marks: Pick<ResendMarks, 'free'>;
}

/**
 * Frees deliveries whose mark belongs to a resend that is over: a crash between giving up a resend
 * and giving up its marks would keep them for ever. True when there was something to free.
 */
export async function freeOrphans(
  { resends, marks }: OrphanDeps,
  deliveries: readonly MarkedDelivery[],
): Promise<boolean> {
  const asked = deliveries.filter(({ mark }) => mark?.state === 'asked');
  const byResend = Map.groupBy(asked, ({ mark }) => mark?.resendId ?? '');
  let isFreed = false;
  for (const [resendId, marked] of byResend) {
    const companyId = marked[0]?.companyId ?? '';
    const owner = await resends.findOne(companyId, resendId);
    if (owner?.status === 'running') continue;
    await marks.free(
      companyId,
      resendId,
      marked.map(({ id }) => id),
    );
    isFreed = true;
  }
  return isFreed;
}
