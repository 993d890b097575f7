import { freePorts, requireFreePorts } from '../../tools/local-stack/machine/ports.ts';

const TRIES = 20;

/**
 * Returns the first of this many consecutive free ports. Throws the error that names the ports in use
 * when there is none.
 */
export async function findFreePortRange(length: number, triesLeft = TRIES): Promise<number> {
  const [first = 0] = await freePorts(1);
  const row = Array.from({ length }, (_, n) => ({
    port: first + n,
    use: 'a management port',
    variable: 'OPS_PORT',
  }));
  try {
    await requireFreePorts(row);
    return first;
  } catch (error) {
    if (triesLeft > 0) return findFreePortRange(length, triesLeft - 1);
    throw error;
  }
}
