/**
 * The rights of a visitor of the portal in the one app that it shows: see webhooks, messages and attempts; change and
 * test webhooks; see their secrets; send failed deliveries again; hold, cancel and replay deliveries.
 */
export const CAPABILITIES = ['view', 'manage', 'secrets', 'resend', 'controlDeliveries'] as const;

export type Capability = (typeof CAPABILITIES)[number];

/**
 * The scopes that a key needs to grant a capability, so that it never grants more than it has. `manage` sends test
 * messages.
 */
const NEEDED: Record<Capability, readonly Scope[]> = {
  view: ['read'],
  manage: ['webhooks:write', 'messages:write'],
  secrets: ['webhooks:write'],
  resend: ['messages:write'],
  controlDeliveries: ['webhooks:write', 'messages:write'],
};

/** Returns the scopes that a key must have to grant these capabilities. */
export function scopesToGrant(capabilities: readonly Capability[]): Scope[] {
  return [...new Set(capabilities.flatMap((capability) => NEEDED[capability]))];
}

/** Returns the capabilities in their order, each once. Every visitor may view. */
export function toCapabilities(asked: readonly Capability[]): Capability[] {
  return CAPABILITIES.filter((each) => each === 'view' || asked.includes(each));
}

/** The rights that a link to the portal grants. */
export interface PortalGrant {
  linkId: string;
  appId: string;
  /**
   * The API key whose revocation ends the link and its portal session: the one that made the link, or the link's own.
   */
  keyHash: string;
  /** The key was made for this link only, and is removed with it. */
  ownsKey?: true;
  capabilities: Capability[];
  theme: PortalTheme;
}

/** How the portal looks. */
export interface PortalTheme {
  name?: string | undefined;
  logoUrl?: string | undefined;
  primaryColor?: string | undefined;
  colorScheme?: 'light' | 'dark' | 'auto' | undefined;
}

/** The scopes of an API key. `admin` includes every other one. */
export const SCOPES = ['messages:write', 'read', 'webhooks:write', 'keys:write', 'admin'] as const;

export type Scope = (typeof SCOPES)[number];

/** The scopes of a key that was made without any. */
export const ALL_SCOPES: readonly Scope[] = ['admin'];

export function allows(granted: readonly Scope[], needed: Scope): boolean {
  return granted.includes(needed) || granted.includes('admin');
}

/** Returns the requested scopes that a key with the granted ones may not pass on. */
export function notGrantable(granted: readonly Scope[], asked: readonly Scope[]): Scope[] {
  return asked.filter((scope) => !allows(granted, scope));
}
