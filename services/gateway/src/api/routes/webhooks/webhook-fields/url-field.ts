import { refusalOfUrl, type EgressPolicy } from '@posthorn/domain/egress/egress-rules.ts';
import { encodedUrl } from '@posthorn/domain/request/encoded-url.ts';
import { z } from 'zod';
import { text } from '../../fields.ts';

const MAX_URL_CHARS = 2_048;

/** A URL that deliveries may go to. `policy` decides which. */
export function urlField(policy: EgressPolicy) {
  const scheme = policy.allowHttp ? '[Hh][Tt][Tt][Pp][Ss]?' : '[Hh][Tt][Tt][Pp][Ss]';
  // No control characters and no backslashes: `URL` drops or replaces them, and another URL would be stored.
  const pattern = `^${scheme}://[^\\s/\\\\?#@\\x00-\\x1f\\x7f]+([/?][^#\\\\\\x00-\\x1f\\x7f]*)?$`;
  return text(0, MAX_URL_CHARS)
    .meta({
      pattern,
      example: 'https://example.com/webhooks',
      description:
        'An http or https URL of a public host, without user, password and fragment. Stored percent-encoded, as it is sent',
    })
    .transform((text, context) => {
      const url = URL.parse(text);
      const message = url ? problemOfUrl(url, policy) : 'must be an absolute URL';
      // `URL` also accepts what only a browser understands, such as `https:host` or leading spaces.
      const isPlain = new RegExp(pattern).test(text);
      if (!message && !isPlain)
        context.addIssue({ code: 'custom', message: 'must be http(s)://…' });
      if (message) context.addIssue({ code: 'custom', message });
      return url ? encodedUrl(url) : z.NEVER;
    });
}

function problemOfUrl(url: URL, policy: EgressPolicy): string | null {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must be http or https';
  if (url.username !== '' || url.password !== '') return 'must not contain a user or password';
  if (url.href.includes('#')) return 'must not contain a fragment';
  // One more character for the path `/` that `URL` adds.
  if (encodedUrl(url).length > MAX_URL_CHARS + 1)
    return 'must have at most 2048 characters once encoded';
  switch (refusalOfUrl(url, policy)) {
    case 'scheme':
      return 'must be https';
    case 'port':
      return 'names a port that deliveries may not go to';
    case 'host':
    case 'address':
      return 'names a host that deliveries may not go to';
    case null:
      return null;
  }
}
