import type { Capability } from './capabilities.ts';

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
