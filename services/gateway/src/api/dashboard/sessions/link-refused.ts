import type { LinkRefusal } from '@posthorn/platform/mongo/companies/links/links.ts';
import { ApiError } from '../../../http/api-error.ts';

/** Says why a link does not open: its page shows the text. */
export function linkRefused(refusal: LinkRefusal): ApiError {
  switch (refusal) {
    case 'used':
      return new ApiError(
        410,
        'link_used',
        'This link was used already. It opens once; ask for another one.',
      );
    case 'expired':
      return new ApiError(410, 'link_expired', 'This link has expired. Ask for another one.');
    case 'revoked':
      return new ApiError(410, 'link_revoked', 'This link was revoked. Ask for another one.');
    case 'unknown':
      return new ApiError(
        404,
        'link_unknown',
        'There is no such link. Check that all of it was copied, or ask for another one.',
      );
  }
}
