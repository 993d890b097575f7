import { SHORT_LIST } from './send-pages.ts';

export interface LongList<Found, Shown> {
  describe: (found: Found) => Shown;
  /** Of two parts, as objects and as text, at most. */
  bytes: number;
  /** Counts the bytes for this request. Throws ApiError 503 when there is no room. */
  reserve: (bytes: number) => void;
}

/** Returns the parts as they are shown. Memory is reserved when the list turns out to be a long one. */
export async function* describeParts<Found, Shown>(
  parts: AsyncIterable<Found[]>,
  { describe, bytes, reserve }: LongList<Found, Shown>,
): AsyncGenerator<Shown[]> {
  let read = 0;
  for await (const part of parts) {
    const isLongNow = read <= SHORT_LIST && read + part.length > SHORT_LIST;
    if (isLongNow) reserve(bytes);
    read += part.length;
    yield part.map(describe);
  }
}
