import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { mongo } from 'mongoose';

/** Resolves true when the company has an app with this id. */
export type HasApp = (companyId: string, appId: string) => Promise<boolean>;

export function createHasApp(db: mongo.Db): HasApp {
  return async (companyId, _id) =>
    (await documentsOf(db, 'apps', companyId).findOne({ _id })) !== null;
}
