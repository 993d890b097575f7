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

/** What a link to the portal gives to who opens it. */
export interface PortalGrant {
  linkId: string;
  appId: string;
  /** Of the API key with which the link and its visit end: the key that made it, or one of its own. */
  keyHash: string;
  /** The key was made for this link only, and goes with it. */
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
