import { requiredAt } from '@posthorn/domain/required.ts';
import type { MarkedDelivery } from '@posthorn/domain/resend.ts';
import type { ResendMarks } from './resend-marks.ts';
import type { ResendStore } from './resends.ts';

export interface OrphanDeps {
  resends: Pick<ResendStore, 'findOne'>;
  marks: Pick<ResendMarks, 'free'>;
}

/**
 * Frees deliveries whose mark belongs to a resend that is over: a crash between the end of a resend
 * and the end of its marks would keep them for ever. Returns true when it freed any.
 */
export async function freeOrphans(
  { resends, marks }: OrphanDeps,
  deliveries: readonly MarkedDelivery[],
): Promise<boolean> {
  const asked = deliveries.flatMap(({ id, companyId, mark }) =>
    mark?.state === 'asked' ? [{ id, companyId, resendId: mark.resendId }] : [],
  );
  let isFreed = false;
  for (const [resendId, marked] of Map.groupBy(asked, (each) => each.resendId)) {
    const { companyId } = requiredAt(marked, 0, 'delivery of the resend');
    const owner = await resends.findOne(companyId, resendId);
    if (owner?.status === 'running') continue;
    const ids = marked.map(({ id }) => id);
    await marks.free(companyId, resendId, ids);
    isFreed = true;
  }
  return isFreed;
}
