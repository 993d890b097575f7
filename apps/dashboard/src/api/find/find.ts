import { api, dataOf, type Schemas } from '../client.ts';

export type Found = Schemas['Found'];

/** Throws ApiFailure 404 when nothing of the company has the id. */
export function findById(id: string): Promise<Found> {
  return dataOf(api.GET('/api/v1/find', { params: { query: { id } } }));
}
