import { type ServiceName, SERVICES } from '../../tools/local-stack/supervisor/services.ts';

/** One value for each of the three services. */
export type PerService<Value> = Record<ServiceName, Value>;

export function perService<Value>(of: (service: ServiceName) => Value): PerService<Value> {
  const entries = SERVICES.map((service) => [service, of(service)] as const);
  return Object.fromEntries(entries) as PerService<Value>;
}

/** Asks all three concurrently. */
export async function askEach<Value>(
  ask: (service: ServiceName) => Promise<Value>,
): Promise<PerService<Value>> {
  const asked = await Promise.all(SERVICES.map(async (service) => [service, await ask(service)]));
  return Object.fromEntries(asked) as PerService<Value>;
}
