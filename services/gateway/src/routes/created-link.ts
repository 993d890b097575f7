import type { Creation } from '../http/route.ts';
import { idField, isoTime, text, timeField } from './fields.ts';

/** Links that open once: to the portal of an app, and invitations. */
type LinkPrefix = 'plnk' | 'inv';

/** Returns the schema of the response to a creation. `url` describes what opening the link does. */
export const createdLinkFields = (prefix: LinkPrefix, url: { opens: string; example: string }) => ({
  id: idField(prefix),
  url: text(1, 2_048)
    .nullable()
    .meta({
      description: `${url.opens}: give it to one person. Null when a repeat with the same \`Idempotency-Key\` gets the response again`,
      example: url.example,
    }),
  expiresAt: timeField,
});

/**
 * Returns how a repeat finds the link of the first request (docs/contract.md C8.6). Nobody can read the URL again: only
 * the hash of its token is stored.
 */
export function creationOfLink(
  prefix: LinkPrefix,
  expiryOf: (companyId: string, id: string) => Promise<number | null>,
): Creation {
  return {
    shownOnce: ['url'],
    async find({ caller: { companyId }, newId }) {
      const id = newId(prefix);
      const expiresAtMs = await expiryOf(companyId, id);
      return expiresAtMs === null
        ? null
        : { data: { id, url: null, expiresAt: isoTime(expiresAtMs) } };
    },
  };
}
