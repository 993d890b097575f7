import { freePorts, requireFreePorts } from '../../tools/local-stack/machine/ports.ts';

const TRIES = 20;

/** The first of so many free ports in a row. Throws what is taken when none was found. */
export async function freePortRow(length: number, triesLeft = TRIES): Promise<number> {
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
    if (triesLeft > 0) return freePortRow(length, triesLeft - 1);
    throw error;
  }
}
