import { api, dataOf } from './client.ts';

export interface Found {
  kind: 'project' | 'app' | 'webhook' | 'message' | 'delivery' | 'attempt' | 'resend' | 'api_key';
  id: string;
  appId?: string | undefined;
  messageId?: string | undefined;
  webhookId?: string | undefined;
}

/** Throws ApiFailure 404 when nothing of the company has the id. */
export function findById(id: string): Promise<Found> {
  return dataOf(api.GET('/api/v1/find' as never, { params: { query: { id } } } as never) as never);
}
