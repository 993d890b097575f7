import fc from 'fast-check';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pypiFolder } from '../../../tools/packages/registry-folders.ts';
import { runProgram } from '../../../tools/check-ops/programs/run-program.ts';
import { sign, verify } from '../src/index.ts';
import { anyCase } from './random-bodies.ts';

const VERSION = '1.1.0';
const TIMEOUT_MS = 120_000;

/** Returns PYTHONPATH for the reference library. Throws when Python or the library cannot be had. */
export const installReference = (): Promise<string> => pypiFolder('standardwebhooks', VERSION);

/**
 * Signs random bodies and has Python's reference library verify them, and the other way round. Throws at the first
 * disagreement. `folder` is for the file with the requests.
 */
export async function compareWithPython(
  pythonPath: string,
  { folder, bodies }: { folder: string; bodies: number },
): Promise<void> {
  // Python's library parses what it verifies.
  const cases = fc.sample(
    anyCase.map((each) => ({ ...each, body: JSON.stringify(each.body) })),
    bodies,
  );
  const timestamp = new Date();
  const seconds = Math.floor(timestamp.getTime() / 1_000);
  const signed = await Promise.all(
    cases.map(async ({ body, ...signer }) => {
      const headers = await sign({ ...signer, payload: body, timestamp });
      return { ...signer, body, seconds, signature: headers['webhook-signature'] };
    }),
  );
  const file = join(folder, 'requests.json');
  writeFileSync(file, JSON.stringify(signed));
  const script = join(import.meta.dirname, 'reference.py');
  const output = await runProgram('python3', [script, file], {
    timeoutMs: TIMEOUT_MS,
    env: { PYTHONPATH: pythonPath, PYTHONDONTWRITEBYTECODE: '1' },
  });
  const signatures = JSON.parse(output) as string[];
  if (signatures.length !== cases.length) throw new Error('Python has not signed every request');
  const verified = signed.map(({ id, body, secret }, index) => {
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': String(seconds),
      'webhook-signature': signatures[index],
    };
    return verify({ body, headers, secrets: [secret] });
  });
  await Promise.all(verified);
}
