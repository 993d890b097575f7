import { z } from 'zod';
import { containerOf, find, readBase } from '../../k8s/read-manifests.ts';
import { type PerService, perService } from '../usage/per-service.ts';
import { bytesOfQuantity } from './quantity.ts';

const limitedContainer = z.object({
  resources: z.object({ limits: z.object({ memory: z.string() }) }),
});

/** Returns the memory limit of the pod of each service, in bytes, from k8s/base. */
export function podMemoryLimits(): PerService<number> {
  const manifests = readBase();
  return perService((service) => {
    const container = limitedContainer.parse(containerOf(find(manifests, service)));
    return bytesOfQuantity(container.resources.limits.memory);
  });
}
