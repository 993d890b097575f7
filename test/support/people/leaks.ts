import { KEPT_CHARS } from '../process/service-process.ts';

/** The beginning of a JSON Web Token, and parameters of a sign-in. */
const OF_A_SIGN_IN = /eyJ[\w-]{8}|[?&](?:code|state|nonce|logout_token|id_token_hint)=/g;

/**
 * Returns the texts that a service has printed and no log may have: these, and whatever looks like a token or a parameter
 * of a sign-in. Throws when the output has lost its beginning, because then nobody knows.
 */
export function leaksIn(output: string, texts: Iterable<string>): string[] {
  if (output.length >= KEPT_CHARS) throw new Error('the output has lost its beginning');
  if (output === '') throw new Error('there is no output to search');
  const printed = [...texts].filter((text) => text !== '' && output.includes(text));
  return [...printed, ...(output.match(OF_A_SIGN_IN) ?? [])];
}
