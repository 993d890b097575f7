import type { mongo } from 'mongoose';

interface PartSizes {
  /** Documents that one request to MongoDB returns. */
  batch: number;
  /** Documents of a part, at most. */
  part: number;
}

/** Returns the documents in parts, in their order. A batch is read when its first part is asked for. */
export async function* readInParts<Document>(
  found: mongo.FindCursor<Document>,
  { batch, part }: PartSizes,
): AsyncGenerator<Document[]> {
  found.batchSize(batch);
  try {
    for (let first = await found.next(); first; first = await found.next()) {
      yield [first, ...found.readBufferedDocuments(part - 1)];
    }
  } finally {
    await found.close();
  }
}
