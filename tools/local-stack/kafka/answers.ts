import { createLocalAdmin } from './local-admin.ts';

/** A listening port is not enough: a broker that still starts up accepts connections and answers nothing. */
export async function kafkaAnswers(brokers: string): Promise<boolean> {
  const admin = createLocalAdmin(brokers);
  try {
    await admin.connect();
    const cluster = await admin.describeCluster();
    return cluster.brokers.length > 0 && cluster.controller !== null;
  } catch {
    return false;
  } finally {
    await admin.disconnect();
  }
}
