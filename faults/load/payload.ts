import { hash } from 'node:crypto';

const PAYLOAD_BYTES = 512;
const NUMBER = /^\{"run":"([^"]*)","n":(\d+),/;

/**
 * The payload of message `n`, as text: derived, so that a receiver can check each byte without a list. The numbers are
 * such that parsing and writing them again would change them.
 */
export function payloadOf(run: string, n: number): string {
  const start = `{"run":"${run}","n":${n},"big":1${String(n).padStart(20, '0')},"one":1.0,"text":"ü`;
  return `${start}${'x'.repeat(Math.max(0, PAYLOAD_BYTES - start.length - 2))}"}`;
}

/** Returns the run and number of a body; null when it has none. */
export function readPayload(body: string): { run: string; n: number } | null {
  const [, run, n] = NUMBER.exec(body) ?? [];
  return run === undefined ? null : { run, n: Number(n) };
}

export function isIntact(body: Buffer, run: string, n: number): boolean {
  return hash('sha256', body) === hash('sha256', payloadOf(run, n));
}
