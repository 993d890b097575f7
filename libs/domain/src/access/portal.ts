import type { Capability } from './capabilities.ts';

/** What a link to the portal gives to who opens it. */
export interface PortalGrant {
  linkId: string;
  appId: string;
  /** Of the API key that made the link: what was given ends with it. */
  keyHash: string;
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
