/** What an API key may do. `admin` includes every other one. */
export const SCOPES = ['messages:write', 'read', 'webhooks:write', 'keys:write', 'admin'] as const;

export type Scope = (typeof SCOPES)[number];

/** What a key without scopes of its own may do: all. Keys of earlier versions have none. */
export const ALL_SCOPES: readonly Scope[] = ['admin'];

export function allows(granted: readonly Scope[], needed: Scope): boolean {
  return granted.includes(needed) || granted.includes('admin');
}

/** Returns which of the asked scopes a key with the granted ones may not pass on. */
export function notGrantable(granted: readonly Scope[], asked: readonly Scope[]): Scope[] {
  return asked.filter((scope) => !allows(granted, scope));
}
