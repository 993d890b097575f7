import type { PortalGrant } from '@posthorn/domain/access.ts';

/** A Link, whose docstring explains the fields. */
export interface LinkDocument {
  /** SHA-256 of its token, in hex. The token itself is not stored. */
  _id: string;
  companyId: string;
  kind: 'signIn' | 'portal';
  createdAt: Date;
  expiresAt: Date;
  /** Absent until it is used. */
  usedAt?: Date;
  /** Absent until it is revoked, or its visitor signs out. */
  revokedAt?: Date;
  /**
   * Of a link to the portal until it is revoked: the index of the links that may be used has no others. Absent in those
   * of earlier versions, which are in no list.
   */
  isLive?: true;
  /** Only of a link to the portal. */
  portal?: PortalGrant;
}

/** What a company has set for its portal. */
export interface PortalSettingsDocument {
  /** The id of the company. */
  _id: string;
  companyId: string;
  /** Of the pages that may frame the portal. */
  origins: string[];
  updatedAt: Date;
}
