import type { Adapter, AdapterPayload } from 'oidc-provider';

/**
 * Returns the store of an issuer, which is forgotten with it. The one that oidc-provider has of its own warns at each start that it
 * is for development.
 */
export function createMemory(): (kind: string) => Adapter {
  const stored = new Map<string, AdapterPayload>();
  return (kind) => {
    const keyOf = (id: string): string => `${kind} ${id}`;
    const own = () => [...stored].filter(([key]) => key.startsWith(keyOf('')));
    const find = (id: string) => Promise.resolve(stored.get(keyOf(id)));
    const none = () => Promise.resolve(undefined);
    return {
      find,
      findByUid: (uid) => Promise.resolve(own().find(([, payload]) => payload.uid === uid)?.[1]),
      findByUserCode: none,
      upsert: (id, payload) => {
        stored.set(keyOf(id), payload);
        return none();
      },
      destroy: (id) => {
        stored.delete(keyOf(id));
        return none();
      },
      consume: async (id) => {
        const payload = await find(id);
        if (payload) payload.consumed = Math.floor(Date.now() / 1_000);
      },
      revokeByGrantId: (grantId) => {
        for (const [key, payload] of own()) if (payload.grantId === grantId) stored.delete(key);
        return none();
      },
    };
  };
}
