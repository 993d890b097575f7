import { notStoredBy, type NotStored } from '@posthorn/domain/message/not-stored.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { mongo } from 'mongoose';

/** Resolves true when the company has an app with this id. */
export type HasApp = (companyId: string, appId: string) => Promise<boolean>;

export function createHasApp(db: mongo.Db): HasApp {
  return async (companyId, _id) =>
    (await documentsOf(db, 'apps', companyId).findOne({ _id })) !== null;
}

/** What the settings of an app say; null when the company has no app with this id. */
export type NotStoredByApp = (companyId: string, appId: string) => Promise<NotStored | null>;

export function createNotStoredByApp(db: mongo.Db): NotStoredByApp {
  return async (companyId, _id) => {
    const app = await documentsOf(db, 'apps', companyId).findOne({ _id });
    return app && notStoredBy(app);
  };
}
