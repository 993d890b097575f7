import { collection } from '@posthorn/platform/mongo/collections.ts';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';

/** Inserts people whom somebody has invited, as sign-ins leave them; returns their ids. */
export async function insertPeople(
  mongodbUrl: string,
  companyId: string,
  count: number,
): Promise<string[]> {
  const createdAt = new Date();
  const people = Array.from({ length: count }, (_, n) => ({
    _id: systemIds('usr'),
    companyId,
    issuer: 'https://login.example.com',
    subject: `person-${n}`,
    name: `Person ${n}`,
    email: null,
    invitedRole: 'viewer' as const,
    createdAt,
    lastSignedInAt: createdAt,
  }));
  const mongo = await connectMongo(mongodbUrl, 'posthorn-test');
  await collection(mongo.db, 'people').insertMany(people);
  await mongo.close();
  return people.map(({ _id }) => _id);
}
