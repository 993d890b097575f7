import { z } from 'zod';
import { containerOf, find, readBase } from '../k8s/read-manifests.ts';
import { type PerService, perService } from './measure/per-service.ts';

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

const FACTORS: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** Returns the bytes of a memory quantity of Kubernetes, such as "768Mi". Throws when it is invalid. */
export function bytesOfQuantity(quantity: string): number {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([A-Za-z]*)$/.exec(quantity) ?? [];
  const factor = FACTORS[unit];
  if (amount === undefined || factor === undefined) {
    throw new Error(`"${quantity}" is not a memory quantity`);
  }
  return Math.round(Number(amount) * factor);
}
