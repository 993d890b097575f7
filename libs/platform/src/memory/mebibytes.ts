/** Settings give memory in MiB. */
export const bytesOfMib = (mib: number): number => mib * 1_048_576;
