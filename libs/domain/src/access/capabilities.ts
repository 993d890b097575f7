import type { Scope } from './scopes.ts';

/**
 * What a visitor of the portal may do in the one app that it shows: see its webhooks, messages and attempts; change its
 * webhooks and test them; see their secrets; send failed deliveries again.
 */
export const CAPABILITIES = ['view', 'manage', 'secrets', 'resend'] as const;

export type Capability = (typeof CAPABILITIES)[number];

/** The scopes that a key needs to give a capability: nobody gives more than they have. Who manages sends test messages. */
const NEEDED: Record<Capability, readonly Scope[]> = {
  view: ['read'],
  manage: ['webhooks:write', 'messages:write'],
  secrets: ['webhooks:write'],
  resend: ['messages:write'],
};

/** Returns the scopes that a key must have to give these capabilities. */
export function scopesToGive(capabilities: readonly Capability[]): Scope[] {
  return [...new Set(capabilities.flatMap((capability) => NEEDED[capability]))];
}

/** Returns the capabilities in their order, each once. Whoever may do anything may look. */
export function toCapabilities(asked: readonly Capability[]): Capability[] {
  return CAPABILITIES.filter((each) => each === 'view' || asked.includes(each));
}
