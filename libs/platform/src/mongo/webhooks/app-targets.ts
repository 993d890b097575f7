import { type NotStored, notStoredBy } from '@posthorn/domain/message.ts';
import type { mongo } from 'mongoose';
import type { Vault } from '../../security/vault.ts';
import { collection } from '../collections.ts';
import type { AppDocument, WebhookDocument } from '../documents.ts';
import { type FoundWebhook, tryToOpen, UNUSED_BY_TARGETS } from './webhooks.ts';

/** An app as a message to it needs it. */
export interface AppTargets {
  companyId: string;
  projectId: string;
  /** The parts of a message that the app does not want stored. */
  notStored: NotStored;
  /** Its oldest webhooks, oldest first. */
  webhooks: FoundWebhook[];
}

/**
 * Reads apps of any company, at most `limit` webhooks of each, in one request. Returns them by id; one that does not exist
 * is missing.
 */
export type ReadAppTargets = (
  appIds: ReadonlySet<string>,
  limit: number,
) => Promise<Map<string, AppTargets>>;

type Settings = 'companyId' | 'projectId' | 'storePayloads' | 'storeResponses';
type ReadApp = Pick<AppDocument, '_id' | Settings> & { webhooks: WebhookDocument[] };

export function createReadAppTargets(db: mongo.Db, vault: Vault): ReadAppTargets {
  return async (appIds, limit) => {
    const found = await collection(db, 'apps')
      .aggregate<ReadApp>([
        { $match: { _id: { $in: [...appIds] } } },
        { $project: { companyId: 1, projectId: 1, storePayloads: 1, storeResponses: 1 } },
        {
          $lookup: {
            from: 'webhooks',
            localField: '_id',
            foreignField: 'appId',
            pipeline: [{ $sort: { _id: 1 } }, { $limit: limit }, { $project: UNUSED_BY_TARGETS }],
            as: 'webhooks',
          },
        },
      ])
      .toArray();
    return new Map(
      found.map(({ _id, companyId, projectId, webhooks, ...settings }) => [
        _id,
        {
          companyId,
          projectId,
          notStored: notStoredBy(settings),
          webhooks: webhooks
            .filter((each) => each.companyId === companyId)
            .map((each) => tryToOpen(vault, each)),
        },
      ]),
    );
  };
}
