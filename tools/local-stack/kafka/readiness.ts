import { createLocalAdmin } from './local-admin.ts';

/**
 * Returns whether the cluster serves requests. An open port is not enough: a starting broker accepts connections and
 * does not respond.
 */
export async function isKafkaReady(brokers: string): Promise<boolean> {
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
