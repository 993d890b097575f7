import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { sign, verify, VerifyError } from '../src/index.ts';

/** Signed at once: WebCrypto works in threads, and each call alone waits for one. */
const AT_ONCE = 200;

/** A request to sign. */
interface Case {
  secret: string;
  id: string;
  body: string;
}

const anySecret = fc
  .uint8Array({ minLength: 24, maxLength: 64 })
  .map((bytes) => `whsec_${Buffer.from(bytes).toString('base64')}`);

export const anyCase: fc.Arbitrary<Case> = fc.record({
  secret: anySecret,
  id: fc.stringMatching(/^msg_[0-9a-zA-Z]{1,26}$/),
  body: fc.oneof(fc.json(), fc.string({ unit: 'binary', maxLength: 200 })),
});

/**
 * Signs random bodies with our `sign` and with the reference library, and verifies them with the other one. Returns the
 * first case in which they disagree, with the reason; null when there is none.
 */
export async function findDisagreement(
  bodies: number,
  seed = Date.now(),
  onProgress: (done: number) => void = () => undefined,
): Promise<string | null> {
  for (let done = 0; done < bodies; done += AT_ONCE) {
    const cases = fc.sample(anyCase, {
      numRuns: Math.min(AT_ONCE, bodies - done),
      seed: seed + done,
    });
    const found = await Promise.all(cases.map(disagreementOf));
    const first = found.findIndex((reason) => reason !== null);
    if (first >= 0) return `${String(found[first])}: ${JSON.stringify(cases[first])}`;
    onProgress(done + cases.length);
  }
  return null;
}

async function disagreementOf({ secret, id, body }: Case): Promise<string | null> {
  const timestamp = new Date();
  const reference = new Webhook(secret);
  const headers = await sign({ payload: body, secret, id, timestamp });
  const signature = reference.sign(id, timestamp, body);
  if (headers['webhook-signature'] !== signature) return 'the signatures differ';
  reference.verify(body, { ...headers }, { jsonParse: false });
  const secrets = [secret];
  const ours = await outcomeOf(verify({ body, headers, secrets }));
  if (ours !== (isJson(body) ? 'accepted' : 'not_json')) return `verify says ${ours}`;
  const changed = await outcomeOf(verify({ body: `${body} `, headers, secrets }));
  return changed === 'no_match' ? null : `verify says ${changed} about a changed body`;
}

const outcomeOf = (verified: Promise<unknown>): Promise<string> =>
  verified.then(
    () => 'accepted',
    (error: unknown) => (error instanceof VerifyError ? error.reason : String(error)),
  );

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
