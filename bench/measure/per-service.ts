import { type UsualService, SERVICES } from '../../tools/local-stack/supervisor/services.ts';

/** One value for each of the three services. */
export type PerService<Value> = Record<UsualService, Value>;

export function perService<Value>(of: (service: UsualService) => Value): PerService<Value> {
  const entries = SERVICES.map((service) => [service, of(service)] as const);
  return Object.fromEntries(entries) as PerService<Value>;
}

/** Queries all three services concurrently. */
export async function queryEach<Value>(
  query: (service: UsualService) => Promise<Value>,
): Promise<PerService<Value>> {
  const asked = await Promise.all(SERVICES.map(async (service) => [service, await query(service)]));
  return Object.fromEntries(asked) as PerService<Value>;
}
