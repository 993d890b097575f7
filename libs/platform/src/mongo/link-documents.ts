/** A Link, whose docstring explains the fields. */
export interface LinkDocument {
  /** SHA-256 of its token, in hex. The token itself is not stored. */
  _id: string;
  companyId: string;
  kind: 'signIn';
  createdAt: Date;
  expiresAt: Date;
  /** Absent until it is used. */
  usedAt?: Date;
}
